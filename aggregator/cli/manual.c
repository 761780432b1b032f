/* SPDX-License-Identifier: Apache-2.0 */
/* What evenkeel(1) says besides its commands and options, which come from their tables. */
#include "aggregator/cli/cli.h"

const struct option_note cli_manual[] = {
	{"DESCRIPTION", NULL,
	 "Agents on every node measure what its workloads use; an aggregator keeps windows of 5, "
	 "10 and 15 minutes and joins them with the Kubernetes API. This command asks the "
	 "aggregator, or computes the same from files (--snapshot). Linked as kubectl-evenkeel it "
	 "is \"kubectl evenkeel\"."},
	{NULL, NULL,
	 "Options may stand before or after the command. Data goes to standard output, messages to "
	 "standard error."},
	{"EXIT STATUS", "0", "Success."},
	{NULL, "1", "An error, such as a server that does not answer."},
	{NULL, "2", "Wrong usage."},
	{NULL, "3", "What was asked for is refused or cannot be, or a check failed."},
	{NULL, "4",
	 "All usage, or that of an object named in the call, is stale or missing; with --strict "
	 "any."},
	{"EXAMPLES", NULL, "Allocatable, use and deviation of every node, the most varying first:"},
	{NULL, NULL, "\tevenkeel nodes --sort-by sigma"},
	{NULL, NULL, "The best node for a pod, with every term of the score:"},
	{NULL, NULL, "\tevenkeel scores --pod pod.yaml --explain"},
	{NULL, NULL, "Nodes that could be drained, from a dump, without a server:"},
	{NULL, NULL,
	 "\tkubectl get nodes,pods,pdb,replicasets -A -o json > dump.json\n"
	 "evenkeel drain --snapshot dump.json --assume-unneeded-for 15m"},
	{CLI_GLOSSARY, "0+2",
	 "Pods of a node: those that have to move + those of DaemonSets, which end with the node."},
	{NULL, "1+1", "Pods of a quota: those with a node + those without."},
	{NULL, "ADVICE",
	 "tooSmall: a request is too small by more than a tenth, the container was killed for "
	 "memory, or its CPU limit throttles it; behind it the resources. tooLarge: by more than "
	 "a tenth, and none is too small. undeclared: no API says what it requests. unknown: too "
	 "little was measured."},
	{NULL, "atMax", "Pods wait because of MAX, until others of their quota end."},
	{NULL, "blend", "Weights by which scores of plugins are added up."},
	{NULL, "BORROWED", "Use above MIN: the unused MIN of other quotas."},
	{NULL, "BURST", "CPU time above the quota that a period may use."},
	{NULL, "CPU-CAP", "Most real CPU use of a node after a plan. MEM-CAP likewise."},
	{NULL, "CPU-KERNEL",
	 "Limit that the kernel enforces, if the pod declares another: the smallest quota on the "
	 "path of cgroups, at most the number of CPUs. MEM-KERNEL: the smallest limit on the "
	 "path."},
	{NULL, "CPU-KERNEL%",
	 "Sum of the limits that the kernel enforces, as a share of the allocatable."},
	{NULL, "CPU-LIM%",
	 "Sum of the limits that pods declare, as a share of the allocatable. Above 100% not all "
	 "pods can use their limits at once."},
	{NULL, "CPU-MEAN%",
	 "Mean of CPU use over the longest window, as a share of the allocatable; CPU% is of the "
	 "newest interval. WORKSET-MEAN% likewise."},
	{NULL, "CPU-NEEDED",
	 "CPU request that demand (use, and what throttling cut off) needs, by --policy. "
	 "MEM-NEEDED, MEM-LIM-NEEDED: request and "
	 "limit of memory likewise."},
	{NULL, "CPU-RESERVED",
	 "Reserve of a plan above the mean of real use: deviations, peaks, placeholders and pods "
	 "that come earlier. MEM-RESERVED likewise."},
	{NULL, "CPU-WAITING",
	 "Share of the last 5 minutes in which some task waited for a CPU because of neighbours."},
	{NULL, "drain", "The node is in the wave and may be drained now."},
	{NULL, "drained", "The node is cordoned and empty, and may be removed."},
	{NULL, "DUE-IN",
	 "Time that the node must stay unneeded before it may be drained. due: this time is over; "
	 "another reason keeps the node."},
	{NULL, "EXCLUSIVE",
	 "CPUs that a single pod has for itself. Other pods cannot use them, even while they are "
	 "idle."},
	{NULL, "expired",
	 "No report for 5 minutes. The values no longer count; if all nodes are silent, scores use "
	 "them for 15 minutes."},
	{NULL, "FITS",
	 "Whether the pod fits the node by the filters of kube-scheduler and the cap on real use."},
	{NULL, "falls",
	 "The group of pods has its minimum now, and would be below it without the pods that "
	 "leave."},
	{NULL, "FRAGMENTED",
	 "Share of the free CPU and memory in pieces that are too small for such a pod."},
	{NULL, "HELD",
	 "Protected memory (memory.min, memory.low) in use beyond the working set: the "
	 "kernel keeps it from other pods."},
	{NULL, "HIGH", "Memory above which the kernel slows the pod down (memory.high)."},
	{NULL, "HZ, PASS, MISSED",
	 "Samples per second of the agent, the time of one, and missed samples."},
	{NULL, "impossible", "No node is large enough for such a pod, even an empty one."},
	{NULL, "inDeletion", "The node is being removed."},
	{NULL, "IOWAIT", "Share of CPU time spent waiting for disks."},
	{NULL, "kept", "The node is a destination of pods of drained nodes."},
	{NULL, "late",
	 "No report for 30 s. The last values count, with an uncertainty that grows with their "
	 "age."},
	{NULL, "LENT", "Part of the unused MIN that other quotas use."},
	{NULL, "LIKELY-CAUSE",
	 "Neighbour that the pod likely waited for, and SHARE its part of the waiting. (system): "
	 "tasks in no pod; -: nobody is named. An estimate, not a proof."},
	{NULL, "LIM-NEEDED",
	 "Least CPU limit that throttles no more periods than --throttled-below."},
	{NULL, "lowering", "Fewer placeholders are needed; their number will soon be lowered."},
	{NULL, "MAX", "The most that a quota allows."},
	{NULL, "MIN", "Guarantee of a quota: its pods get it back from borrowers."},
	{NULL, "needed", "The node stays. REASON says why."},
	{NULL, "NO-LIMIT", "Containers without a limit of CPU/memory."},
	{NULL, "notExamined", "The planner had no time left for the node."},
	{NULL, "OOM", "OOM kills in the last 5 minutes; of advise in the last four days."},
	{NULL, "OVERFLOW",
	 "Control groups above the agent's limit; only their parents count them."},
	{NULL, "overMax", "The namespace uses more than MAX."},
	{NULL, "P95",
	 "The 95th percentile: CPU use stays below it in 95 of 100 samples. P95(1h): of the newest "
	 "hour."},
	{NULL, "P95-FIT",
	 "The 95th percentile of use plus headroom, as a share of the allocatable: what requests "
	 "could be."},
	{NULL, "PEAK", "Largest working set of a pod in the last days."},
	{NULL, "PENDING", "Requests of pods without a node."},
	{NULL, "placeholder", "Room for a future pod; plans count it as a pod."},
	{NULL, "REAL", "Real use: 95th percentile of CPU, working set of memory."},
	{NULL, "RESIZE",
	 "State of a resize in place. Deferred: the node has no room now. Infeasible: the node "
	 "never has the room."},
	{NULL, "RUNG",
	 "Fallback level: the measurements behind a score. window 15m, 10m or 5m: so many minutes. "
	 "since start: less than 5 minutes. late 42s: older than 30 s. allocation: requests alone. "
	 "expired, none: nothing."},
	{NULL, "SEEN",
	 "Time in which demand was measured. Painted below a day: a day has not been seen whole."},
	{NULL, "SIGMA", "Standard deviation of CPU use in the window."},
	{NULL, "SINCE", "Time since which the node is unneeded."},
	{NULL, "SLOTS", "Number of such pods that could start now, by requests."},
	{NULL, "STALLED",
	 "Share of the last 5 minutes in which no task could run for lack of CPU/memory."},
	{NULL, "START", "Largest demand for CPU in the first two minutes of a container."},
	{NULL, "starved", "Pods wait within MIN, because other quotas borrow it."},
	{NULL, "STEAL", "Share of CPU time that the hypervisor took."},
	{NULL, "THROTTLED",
	 "Share of CPU periods that hit the CPU limit; of advise over days, of which each counts "
	 "half as much as the next."},
	{NULL, "TIER",
	 "Source of the agent's samples. T0 to T2: BPF, by the best interface of the kernel. T3: "
	 "cgroup files alone, once a second; deviations are coarser."},
	{NULL, "unneeded", "The node could be drained, but not yet. REASON says why."},
	{NULL, "UNPLACED", "Placeholders without room on any node: nodes are missing."},
	{NULL, "USABLE", "Number of such pods that could start now, by requests and real use."},
	{NULL, "variant",
	 "Rules of arithmetic: corrected, or upstream (those of scheduler-plugins)."},
	{NULL, "WAITING",
	 "Share of the last 5 minutes in which some task waited for CPU/memory because of "
	 "neighbours (pressure stall information)."},
	{NULL, "waiting", "Pods wait for more than MIN."},
	{NULL, "WANTED", "Target number of placeholders."},
	{NULL, "wave", "Nodes that may be drained together: each of their pods has a destination."},
	{NULL, "WORKSET",
	 "Working set: memory in use without droppable file pages. Near the limit an OOM kill is "
	 "likely."},
	{"SEE ALSO", NULL, "evenkeel-agent(8), evenkeel-aggregator(8), kubectl(1)"},
	{NULL, NULL, NULL},
};
