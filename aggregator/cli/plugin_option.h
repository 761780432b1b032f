/* SPDX-License-Identifier: Apache-2.0 */
/* What --plugin says, as members of a score request. */
#ifndef EVENKEEL_AGGREGATOR_CLI_PLUGIN_OPTION_H
#define EVENKEEL_AGGREGATOR_CLI_PLUGIN_OPTION_H

#include "shared/jsonw.h"
#include "shared/options.h"
#include "shared/reason.h"

/*
 * Each is NAME, NAME:ARGUMENT=VALUE,ARGUMENT=VALUE.. or NAME:{..}, an object in JSON or YAML. In
 * the short form values are read as YAML has them, and a dot in an argument's name leads into an
 * object. Writes "plugins", and "args" when there are any; nothing where no plugin is named. Names
 * and values are the API's to judge. -EINVAL with the reason for what has another form.
 */
int plugin_option_write(const struct option_list *plugins, struct jsonw *w, struct reason *reason);

#endif
