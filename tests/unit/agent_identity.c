/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every level, class and runtime from paths as kubelet, the runtimes and systemd write them; all
 * ids are made up.
 */
#include "agent/identity.h"
#include "tests/cgroup_level.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define UID   "0a1b2c3d-1111-4222-8333-44445555aaaa"
#define UNIT  "0a1b2c3d_1111_4222_8333_44445555aaaa" /* the same in a systemd unit's name */
#define UID2  "ffffffff-2222-4333-9444-55556666bbbb"
#define UNIT2 "ffffffff_2222_4333_9444_55556666bbbb"
#define HASH  "00112233445566778899aabbccddeeff"
#define ID    "aa00000000000000000000000000000000000000000000000000000000000001"
#define ID2   "bb00000000000000000000000000000000000000000000000000000000000002"

#define SLICE	 "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UNIT ".slice"
#define DIR	 "/kubepods/besteffort/pod" UID
#define CRI(id)	 "/cri-containerd-" id ".scope"
#define CRIO(id) "/crio-" id ".scope"

#define G  QOS_GUARANTEED
#define B  QOS_BURSTABLE
#define E  QOS_BEST_EFFORT
#define NQ QOS_UNKNOWN
#define NR RUNTIME_UNKNOWN

static const struct path_case {
	const char *path;
	enum cgroup_level level;
	enum qos_class qos;
	enum container_runtime runtime;
	const char *pod_uid;
	const char *container_id;
} cases[] = {
	/* roots and classes */
	{"/", LEVEL_ROOT, NQ, NR, "", ""},
	{"", LEVEL_ROOT, NQ, NR, "", ""},
	{"//", LEVEL_ROOT, NQ, NR, "", ""},
	{"/kubepods", LEVEL_KUBEPODS, NQ, NR, "", ""},
	{"/kubepods.slice", LEVEL_KUBEPODS, NQ, NR, "", ""},
	{"/kubelet.slice/kubelet-kubepods.slice", LEVEL_KUBEPODS, NQ, NR, "", ""},
	{"/a/b/kubepods/", LEVEL_KUBEPODS, NQ, NR, "", ""},
	{"/docker/" ID "/kubepods", LEVEL_KUBEPODS, NQ, NR, "", ""},
	{"/kubepods/burstable", LEVEL_QOS, B, NR, "", ""},
	{"/kubepods/besteffort", LEVEL_QOS, E, NR, "", ""},
	{"/kubepods/guaranteed", LEVEL_QOS, G, NR, "", ""},
	{"/kubepods.slice/kubepods-besteffort.slice", LEVEL_QOS, E, NR, "", ""},
	{"/x.slice/x-kubepods.slice/x-kubepods-burstable.slice", LEVEL_QOS, B, NR, "", ""},
	/* pods */
	{SLICE, LEVEL_POD, B, NR, UID, ""},
	{"/kubepods.slice/kubepods-pod" UNIT ".slice", LEVEL_POD, G, NR, UID, ""},
	{DIR, LEVEL_POD, E, NR, UID, ""},
	{"/kubepods/pod" UID, LEVEL_POD, G, NR, UID, ""},
	{"/kubepods/guaranteed/pod" UID, LEVEL_POD, G, NR, UID, ""},
	{"/kubepods/burstable/pod" HASH, LEVEL_POD, B, NR, HASH, ""},
	{"/kubepods.slice/kubepods-pod" HASH ".slice", LEVEL_POD, G, NR, HASH, ""},
	{SLICE "/", LEVEL_POD, B, NR, UID, ""},
	{SLICE " (deleted)", LEVEL_POD, B, NR, UID, ""},
	{SLICE "/some.scope", LEVEL_POD_SUB, B, NR, UID, ""},
	{DIR "/a/b", LEVEL_POD_SUB, E, NR, UID, ""},
	/* containers in pods */
	{SLICE CRI(ID), LEVEL_CONTAINER, B, RUNTIME_CONTAINERD, UID, ID},
	{SLICE CRIO(ID), LEVEL_CONTAINER, B, RUNTIME_CRIO, UID, ID},
	{SLICE "/docker-" ID ".scope", LEVEL_CONTAINER, B, RUNTIME_DOCKER, UID, ID},
	{SLICE "/libpod-" ID ".scope", LEVEL_CONTAINER, B, RUNTIME_PODMAN, UID, ID},
	{SLICE CRI(ID) "/", LEVEL_CONTAINER, B, RUNTIME_CONTAINERD, UID, ID},
	{SLICE CRI(ID) " (deleted)", LEVEL_CONTAINER, B, RUNTIME_CONTAINERD, UID, ID},
	{DIR "/" ID, LEVEL_CONTAINER, E, NR, UID, ID},
	{DIR "/crio-" ID, LEVEL_CONTAINER, E, RUNTIME_CRIO, UID, ID},
	{"/kubepods/pod" HASH "/" ID, LEVEL_CONTAINER, G, NR, HASH, ID},
	{"/sys/fs/cgroup/cpu,cpuacct" DIR "/" ID, LEVEL_CONTAINER, E, NR, UID, ID},
	{"/host/sys/fs/cgroup" SLICE CRIO(ID), LEVEL_CONTAINER, B, RUNTIME_CRIO, UID, ID},
	{"/x.slice/x-kubepods.slice/x-kubepods-pod" UNIT ".slice" CRI(ID), LEVEL_CONTAINER, G,
	 RUNTIME_CONTAINERD, UID, ID},
	/* below a container: its own */
	{SLICE CRIO(ID) "/container", LEVEL_CONTAINER_SUB, B, RUNTIME_CRIO, UID, ID},
	{SLICE CRI(ID) "/system.slice/a.service", LEVEL_CONTAINER_SUB, B, RUNTIME_CONTAINERD, UID,
	 ID},
	{DIR "/" ID "/docker/" ID2, LEVEL_CONTAINER_SUB, E, NR, UID, ID},
	{SLICE CRIO(ID) "/crio-conmon-" ID2 ".scope", LEVEL_CONTAINER_SUB, B, RUNTIME_CRIO, UID,
	 ID},
	/* Kubernetes inside a container or pod: the innermost names it */
	{"/system.slice/docker-" ID2 ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-"
	 "besteffort.slice/kubelet-kubepods-besteffort-pod" UNIT ".slice" CRI(ID),
	 LEVEL_CONTAINER, E, RUNTIME_CONTAINERD, UID, ID},
	{"/docker/" ID2 DIR "/" ID, LEVEL_CONTAINER, E, NR, UID, ID},
	{SLICE CRI(ID) "/kubepods.slice/kubepods-pod" UNIT2 ".slice" CRIO(ID2), LEVEL_CONTAINER, G,
	 RUNTIME_CRIO, UID2, ID2},
	{"/docker/pod" UID "/" ID, LEVEL_CONTAINER, G, NR, UID, ID},
	{SLICE CRI(ID) "/kubepods/burstable/pod" UID2, LEVEL_POD, B, NR, UID2, ""},
	{"/docker/" ID "/kubelet", LEVEL_CONTAINER_SUB, NQ, RUNTIME_DOCKER, "", ID},
	/* a slice's name, the runtime's prefix and the id in one directory */
	{"/system.slice/containerd.service/kubepods-besteffort-pod" UNIT
	 ".slice:cri-containerd:" ID,
	 LEVEL_CONTAINER, E, RUNTIME_CONTAINERD, UID, ID},
	{"/kubepods-pod" UNIT ".slice:crio:" ID, LEVEL_CONTAINER, G, RUNTIME_CRIO, UID, ID},
	{"/kubepods-burstable-pod" HASH ".slice:docker:" ID "/x", LEVEL_CONTAINER_SUB, B,
	 RUNTIME_DOCKER, HASH, ID},
	{"/system.slice:docker:" ID, LEVEL_CONTAINER, NQ, RUNTIME_DOCKER, "", ID},
	{"/kubepods-podbad.slice:crio:" ID, LEVEL_NONE, NQ, NR, "", ""},
	{"/kubepods-pod" UNIT ".slice:crio:abc", LEVEL_NONE, NQ, NR, "", ""},
	{"/a.slice:other:" ID, LEVEL_NONE, NQ, NR, "", ""},
	{"/a.slice:crio", LEVEL_NONE, NQ, NR, "", ""},
	{"/::", LEVEL_NONE, NQ, NR, "", ""},
	/* monitors */
	{SLICE "/crio-conmon-" ID ".scope", LEVEL_HELPER, B, RUNTIME_CRIO, UID, ""},
	{DIR "/crio-conmon-" ID, LEVEL_HELPER, E, RUNTIME_CRIO, UID, ""},
	{"/machine.slice/libpod-conmon-" ID ".scope", LEVEL_HELPER, NQ, RUNTIME_PODMAN, "", ""},
	{"/system.slice/crio-conmon-" ID ".scope/x", LEVEL_HELPER, NQ, RUNTIME_CRIO, "", ""},
	/* Kata: a sandbox, and what runs for it outside, which no pod counts */
	{DIR "/kata_" ID, LEVEL_CONTAINER, E, NR, UID, ID},
	{SLICE "/kata_" ID, LEVEL_CONTAINER, B, NR, UID, ID},
	{"/kubepods/pod" UID "/kata_crio-" ID, LEVEL_CONTAINER, G, RUNTIME_CRIO, UID, ID},
	{DIR "/kata_" ID "/vcpu", LEVEL_CONTAINER_SUB, E, NR, UID, ID},
	{"/docker/" ID2 DIR "/kata_" ID, LEVEL_CONTAINER, E, NR, UID, ID},
	{"/vc/kata_" ID, LEVEL_CONTAINER, NQ, NR, "", ID},
	{DIR "/kata_a" ID, LEVEL_POD_SUB, E, NR, UID, ""},
	{DIR "/kata_", LEVEL_POD_SUB, E, NR, UID, ""},
	{"/kata_overhead", LEVEL_HELPER, NQ, NR, "", ""},
	{"/kata_overhead/", LEVEL_HELPER, NQ, NR, "", ""},
	{"/kata_overhead/" ID, LEVEL_HELPER, NQ, NR, "", ID},
	{"/kata_overhead/kata_" ID, LEVEL_HELPER, NQ, NR, "", ID},
	{"/kata_overhead/" ID " (deleted)", LEVEL_HELPER, NQ, NR, "", ID},
	{"/kata_overhead/" ID "/sub", LEVEL_HELPER, NQ, NR, "", ID},
	{"/kata_overhead/other", LEVEL_HELPER, NQ, NR, "", ""},
	{"/kata_overhead" DIR "/" ID, LEVEL_HELPER, E, NR, UID, ID},
	{"/kata_overhead/kubepods", LEVEL_HELPER, NQ, NR, "", ""},
	{"/docker/" ID2 "/kata_overhead/" ID, LEVEL_CONTAINER_SUB, NQ, RUNTIME_DOCKER, "", ID2},
	/* containers without Kubernetes */
	{"/system.slice/docker-" ID ".scope", LEVEL_CONTAINER, NQ, RUNTIME_DOCKER, "", ID},
	{"/docker/" ID, LEVEL_CONTAINER, NQ, RUNTIME_DOCKER, "", ID},
	{"/docker/" ID "/docker/" ID2, LEVEL_CONTAINER_SUB, NQ, RUNTIME_DOCKER, "", ID},
	{"/ecs/" HASH "/" ID, LEVEL_CONTAINER, NQ, RUNTIME_DOCKER, "", ID},
	{"/k8s.io/" ID, LEVEL_CONTAINER, NQ, RUNTIME_CONTAINERD, "", ID},
	{"/custom/" ID, LEVEL_CONTAINER, NQ, NR, "", ID},
	{"/" ID, LEVEL_CONTAINER, NQ, NR, "", ID},
	{"/machine.slice/libpod-" ID ".scope/container", LEVEL_CONTAINER_SUB, NQ, RUNTIME_PODMAN,
	 "", ID},
	{"/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope", LEVEL_CONTAINER, NQ,
	 RUNTIME_PODMAN, "", ID},
	{"/libpod_parent/" ID2 "/libpod-" ID, LEVEL_CONTAINER, NQ, RUNTIME_PODMAN, "", ID},
	{"/system.slice/a.service/libpod-payload-" ID, LEVEL_CONTAINER, NQ, RUNTIME_PODMAN, "", ID},
	/* nothing of the kind */
	{"/system.slice", LEVEL_NONE, NQ, NR, "", ""},
	{"/system.slice/kubelet.service", LEVEL_NONE, NQ, NR, "", ""},
	{"/system.slice/kubepods-backup.service", LEVEL_NONE, NQ, NR, "", ""},
	{"/kubepods.service", LEVEL_NONE, NQ, NR, "", ""},
	{"/mykubepods.slice", LEVEL_NONE, NQ, NR, "", ""},
	{"/kubepods-backup.slice", LEVEL_NONE, NQ, NR, "", ""},
	{"/burstable", LEVEL_NONE, NQ, NR, "", ""},
	{"/user.slice/user-1000.slice/session-3.scope", LEVEL_NONE, NQ, NR, "", ""},
	{"/machine.slice/machine-libpod_pod_" ID ".slice", LEVEL_NONE, NQ, NR, "", ""},
	/* almost */
	{DIR "/a" ID, LEVEL_POD_SUB, E, NR, UID, ""},
	{DIR "/" ID ".scope", LEVEL_POD_SUB, E, NR, UID, ""},
	{DIR "/AA00000000000000000000000000000000000000000000000000000000000001", LEVEL_POD_SUB, E,
	 NR, UID, ""},
	{DIR "/other-" ID ".scope", LEVEL_POD_SUB, E, NR, UID, ""},
	{SLICE "/cri-containerd-" ID "0.scope", LEVEL_POD_SUB, B, NR, UID, ""},
	{"/docker/a00000000000000000000000000000000000000000000000000000000000001", LEVEL_NONE, NQ,
	 NR, "", ""},
	{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UNIT "0.slice",
	 LEVEL_NONE, E, NR, "", ""},
	{"/kubepods/burstable/pod0a1b2c3d-1111-4222-8333-44445555aaa/" ID, LEVEL_NONE, B, NR, "",
	 ""},
	{"/kubepods/burstable/pod0a1b2c3d-1111_4222-8333-44445555aaaa", LEVEL_NONE, B, NR, "", ""},
	{"/kubepods/burstable/pod0a1b2c3d-1111-4222-83334-4445555aaaa", LEVEL_NONE, B, NR, "", ""},
	{"/kubepods/burstable/podg0112233445566778899aabbccddeeff", LEVEL_NONE, B, NR, "", ""},
	{"/kubepods/burstable/xpod" UID, LEVEL_NONE, B, NR, "", ""},
	{"/kubepods/burstable/kubepods-pod" UNIT, LEVEL_NONE, B, NR, "", ""},
	{"/kubepods/other/" ID, LEVEL_NONE, NQ, NR, "", ""},
	{"/other.slice/other-pod" UNIT ".slice", LEVEL_NONE, NQ, NR, "", ""},
};

static void test_paths(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct path_case *c = &cases[i];
		struct identity got;

		memset(&got, 0xee, sizeof(got));
		identity_parse(c->path, &got);
		if (got.level == c->level && got.qos == c->qos && got.runtime == c->runtime &&
		    !strcmp(got.pod_uid, c->pod_uid) && !strcmp(got.container_id, c->container_id))
			continue;
		wrong++;
		print_error("%s\n  got %s qos %d runtime %d pod '%s' container '%s', want %s\n",
			    c->path, cgroup_level_name(got.level), (int)got.qos, (int)got.runtime,
			    got.pod_uid, got.container_id, cgroup_level_name(c->level));
	}
	assert_int_equal(wrong, 0);
}

static void test_level_names(void **state)
{
	(void)state;
	assert_string_equal(cgroup_level_name(LEVEL_NONE), "none");
	assert_string_equal(cgroup_level_name(LEVEL_CONTAINER_SUB), "container-sub");
	assert_string_equal(cgroup_level_name(LEVEL_POD_SUB), "pod-sub");
	assert_string_equal(cgroup_level_name(LEVEL_HELPER), "helper");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_level_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
