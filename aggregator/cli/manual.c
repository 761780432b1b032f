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
	{"EXAMPLES", NULL, "What every node has, uses and how that varies, most varying first:"},
	{NULL, NULL, "\tevenkeel nodes --sort-by sigma"},
	{NULL, NULL, "Where a pod would run best, with every term of the arithmetic:"},
	{NULL, NULL, "\tevenkeel scores --pod pod.yaml --explain"},
	{NULL, NULL, "What could be drained, from a dump, without any server:"},
	{NULL, NULL,
	 "\tkubectl get nodes,pods,pdb,replicasets -A -o json > dump.json\n"
	 "evenkeel drain --snapshot dump.json --assume-unneeded-for 15m"},
	{CLI_GLOSSARY, "0+2",
	 "Of a node: pods that would have to move + pods of DaemonSets, which end with the node."},
	{NULL, "1+1", "Of a quota: pods with a node + pods that wait for one."},
	{NULL, "atMax", "Pods wait for others of their quota to end: MAX holds them."},
	{NULL, "blend", "Weights of plugins whose scores are added up."},
	{NULL, "BORROWED", "Use beyond MIN, out of what others leave unused."},
	{NULL, "BURST", "CPU time above its quota that a period may take."},
	{NULL, "CPU-CAP", "The most real CPU use that a plan leaves on a node. MEM-CAP likewise."},
	{NULL, "CPU-KERNEL",
	 "The limit that the kernel enforces, where the pod declares another: the least of "
	 "quotas along the path of cgroups and of the number of CPUs. MEM-KERNEL likewise, "
	 "without CPUs."},
	{NULL, "CPU-KERNEL%", "As CPU-LIM%, by the limits that the kernel enforces."},
	{NULL, "CPU-LIM%",
	 "Limits that pods declare, by the allocatable. Above 100% pods cannot all have what their "
	 "limits allow."},
	{NULL, "CPU-MEAN%",
	 "Mean of CPU use over the longest window, by the allocatable; CPU% is the newest "
	 "interval's. WORKSET-MEAN% likewise."},
	{NULL, "CPU-RESERVED",
	 "What a plan adds to the mean of real use: deviations, peaks, placeholders and pods that "
	 "come before. MEM-RESERVED likewise."},
	{NULL, "drain", "The node goes now: it is in the wave."},
	{NULL, "drained", "The node is cordoned and empty: it waits to be removed."},
	{NULL, "DUE-IN",
	 "How long the node has to stay unneeded before it may go. due: it may go, and something "
	 "else holds it."},
	{NULL, "EXCLUSIVE",
	 "CPUs that one pod each has alone. They are no room for other pods, even while they"
	 " are idle."},
	{NULL, "expired",
	 "Not heard for 5 minutes. The values do not count any more; where all nodes are silent, "
	 "scores use them for 15 minutes."},
	{NULL, "FITS",
	 "Whether the pod could go to the node by the filters of kube-scheduler and the cap on "
	 "real use."},
	{NULL, "falls",
	 "Of a group of pods: it had its minimum, and has not without the pods that leave."},
	{NULL, "FRAGMENTED",
	 "Share of the free CPU and memory that lies in pieces too small for such a pod."},
	{NULL, "HELD",
	 "Protected memory (memory.min, memory.low) in use beyond the working set: the "
	 "kernel keeps it from other pods."},
	{NULL, "HIGH", "Memory from which on the kernel slows the pod down (memory.high)."},
	{NULL, "HZ, PASS, MISSED",
	 "The agent's passes per second, the time of one, and those that were due and missed."},
	{NULL, "impossible", "No node is large enough for such a pod, even when empty."},
	{NULL, "inDeletion", "The node is being removed already."},
	{NULL, "IOWAIT", "Share of CPU time that waited for disks."},
	{NULL, "kept", "Pods of nodes that go would come to this node."},
	{NULL, "late",
	 "Not heard for 30 s. The last values count, with more doubt the older they are."},
	{NULL, "LENT", "What others use of an unused MIN."},
	{NULL, "lowering", "Fewer placeholders would do, and will soon be there."},
	{NULL, "MAX", "The most that a quota allows."},
	{NULL, "MIN", "What a quota guarantees: its pods get it back from those that borrowed it."},
	{NULL, "needed", "The node stays. REASON says why."},
	{NULL, "NO-LIMIT", "Containers without a limit of CPU/memory."},
	{NULL, "notExamined", "Time ran out before the node was looked at."},
	{NULL, "OOM", "Kills for want of memory in the last 5 minutes."},
	{NULL, "OVERFLOW",
	 "Control groups beyond the agent's room; only their parents count them."},
	{NULL, "overMax", "The namespace uses more than MAX."},
	{NULL, "P95",
	 "The 95th percentile: CPU use stays below it in 95 of 100 samples. P95(1h): of the newest "
	 "hour."},
	{NULL, "P95-FIT",
	 "Requests in shares of the allocatable, were they the 95th percentile of use and some "
	 "headroom."},
	{NULL, "PENDING", "What pods without a node request."},
	{NULL, "placeholder", "Room that is kept for a pod to come; plans count it as a pod."},
	{NULL, "REAL", "What is really used: 95th percentile of CPU, working set of memory."},
	{NULL, "RESIZE",
	 "State of a change of the pod's resources in place. Deferred: the node has no room now. "
	 "Infeasible: the node can never do it."},
	{NULL, "RUNG",
	 "Fallback level: what a score stands on. window 15m, 10m or 5m: that much was measured. "
	 "since start: less than 5 minutes. late 42s: older than 30 s. allocation: requests alone. "
	 "expired, none: nothing."},
	{NULL, "SIGMA", "Standard deviation of CPU use in the window."},
	{NULL, "SINCE", "How long the node has been unneeded."},
	{NULL, "SLOTS", "How many such pods could start now by requests."},
	{NULL, "STALLED",
	 "Share of the last 5 minutes in which no task could run, for CPU/memory."},
	{NULL, "starved", "Pods wait for what MIN guarantees, and others have it."},
	{NULL, "STEAL", "Share of CPU time that the hypervisor took."},
	{NULL, "THROTTLED", "Share of CPU periods that hit the CPU limit."},
	{NULL, "TIER",
	 "How the agent samples. T0 to T2: BPF counts each switch of a task, by the best way that "
	 "the kernel has. T3: cgroup files alone, read more seldom; deviations are coarser."},
	{NULL, "unneeded", "The node could go, and does not yet. REASON says why."},
	{NULL, "UNPLACED", "Placeholders that no node has room for: nodes are missing."},
	{NULL, "USABLE",
	 "How many such pods could start now where CPU and memory are really free."},
	{NULL, "variant",
	 "Rules of arithmetic: corrected, or upstream, as the plugins of scheduler-plugins "
	 "compute."},
	{NULL, "WAITING",
	 "Share of the last 5 minutes in which some task waited for neighbours, for CPU/memory "
	 "(pressure stall information)."},
	{NULL, "waiting", "Pods wait for more than MIN guarantees."},
	{NULL, "WANTED", "Placeholders that shall be there."},
	{NULL, "wave", "Nodes that may be drained together: each pod has a place."},
	{NULL, "WORKSET",
	 "Working set: memory in use without file pages that can be dropped. Near the limit an OOM "
	 "kill is near."},
	{"SEE ALSO", NULL, "evenkeel-agent(8), evenkeel-aggregator(8), kubectl(1)"},
	{NULL, NULL, NULL},
};
