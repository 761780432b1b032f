/* Each view of the page on a simulated cluster of 200 nodes: what it shows, and that every control works. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Bed, closeBrowser, cluster, examine, openPage, until } from "./bed.mjs";

let bed;

before(async () => {
	bed = await Bed.open("views", { objects: cluster(200), options: ["--scale-down-unneeded-time", "3s"] });
	bed.agents(200);
	await bed.heard(200);
	await until("a wave of drains", async () => (await bed.get("/v1/drain")).wave);
});

after(async () => {
	await closeBrowser();
	await bed.close();
});

const head = (page, text) => page.getByRole("heading", { level: 1, name: text }).waitFor();
const rows = (page, caption) => page.locator("table", { has: page.locator("caption", { hasText: caption }) }).locator("tbody tr");

test("nodes: colours, groups, search, keys, the table", async () => {
	const page = await openPage(bed.url);
	await rows(page, "Nodes").first().waitFor();
	assert.equal(await page.locator(".tile .value").first().textContent(), "200");
	await examine(page, "nodes");

	await page.getByRole("combobox", { name: /^Colour/ }).selectOption("limits");
	await page.getByRole("combobox", { name: /^Group/ }).selectOption("pool");
	await until("the URL", () => page.url().includes("metric=limits") && page.url().includes("group=pool"));
	const link = page.url();

	await page.getByLabel("Search").fill("node-019");
	await until("ten nodes", async () => (await rows(page, "Nodes").count()) === 10);
	await page.getByLabel("Search").fill("pool=batch");
	await until("nodes by label", async () => (await rows(page, "Nodes").count()) === 12);
	await page.getByLabel("Search").fill("no such");
	await page.getByText('No node matches "no such"').waitFor();
	await page.getByLabel("Search").fill("");

	await page.getByRole("button", { name: "CPU%" }).click();
	await until("an order", () => page.url().includes("sort=-cpup"));
	const shares = await rows(page, "Nodes").locator("td:nth-child(4)").allTextContents();
	assert.deepEqual(shares, [...shares].sort((a, b) => parseInt(b) - parseInt(a)));
	await page.getByRole("button", { name: "Next" }).click();
	await page.getByText("51 to 100 of 200").waitFor();

	await page.locator("canvas").focus();
	for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp"]) await page.keyboard.press(key);
	await until("a node that was chosen by keys", async () => /^node-\d+, CPU/.test(await page.locator("[aria-live]").textContent()));
	const chosen = (await page.locator("[aria-live]").textContent()).split(",")[0];
	await page.keyboard.press("Enter");
	await head(page, chosen);
	assert.deepEqual(page.faults(), []);
	await page.close();

	const again = await openPage(bed.url, { hash: link.slice(link.indexOf("#")) });
	await again.locator("canvas").waitFor();
	assert.equal(await again.getByRole("combobox", { name: /^Colour/ }).inputValue(), "limits");
	assert.equal(await again.getByRole("combobox", { name: /^Group/ }).inputValue(), "pool");
	await again.close();
});

test("nodes: a click on a box opens its node", async () => {
	const page = await openPage(bed.url);
	await page.locator("canvas").click({ position: { x: 8, y: 8 } });
	await head(page, "node-0000");
	await page.close();
});

/* Drawn boxes are found by name: their places change with the search, as they do when nodes come and go. */
test("nodes: the chosen one stays while others go, and none is opened once it is gone itself", async () => {
	const page = await openPage(bed.url);
	const live = page.locator("[aria-live]");
	const search = (text) => page.getByLabel("Search").fill(text);
	await page.locator("canvas").focus();
	for (let i = 0; i <= 12; i++) await page.keyboard.press("ArrowRight");
	await until("the 13th node", async () => /^node-0012,/.test(await live.textContent()));
	await search("node-001");
	await until("ten nodes", async () => (await rows(page, "Nodes").count()) === 10);
	assert.match(await live.textContent(), /^node-0012,/);
	await search("node-002");
	await until("nothing chosen", async () => (await live.textContent()) === "");
	await page.locator("canvas").focus();
	await page.keyboard.press("Enter");
	assert.match(page.url(), /#\/nodes/);
	await search("node-001");
	await until("the 13th node again", async () => /^node-0012,/.test(await live.textContent()));
	await page.locator("canvas").focus();
	await page.keyboard.press("Enter");
	await head(page, "node-0012");
	assert.deepEqual(page.faults(), []);
	await page.close();
});

test("risk: z and cap are typed letter by letter", async () => {
	const page = await openPage(bed.url, { hash: "#/risk?z=3" });
	await rows(page, "Nodes by what").first().waitFor();
	for (const [label, text, param] of [["z", "0.5", "z"], ["Cap, %", "12.5", "cap"]]) {
		const field = page.getByLabel(label, { exact: true });
		await field.focus();
		await page.keyboard.press("Control+A");
		await page.keyboard.press("Delete");
		await page.keyboard.type(text, { delay: 20 });
		assert.equal(await field.inputValue(), text);
		await until("the URL", () => new URLSearchParams(page.url().split("?")[1]).get(param) === text);
	}
	await page.getByText("mean + 0.5 sigma").waitFor();
	assert.deepEqual(page.faults(), []);
	await page.close();
});

test("risk: z and cap move nodes beyond the line", async () => {
	const page = await openPage(bed.url, { hash: "#/risk" });
	await rows(page, "Nodes by what").first().waitFor();
	await examine(page, "risk");
	await page.getByLabel("Cap, %").fill("1");
	await page.getByText(/200 nodes of 200 may exceed/).waitFor();
	await page.getByLabel("Cap, %").fill("200");
	await page.getByText(/0 nodes of 200 may exceed/).waitFor();
	await page.getByRole("combobox", { name: /^Resource/ }).selectOption("memory");
	await page.getByText(/allocatable Memory/).waitFor();
	assert.deepEqual(page.faults(), []);
	await page.close();
});

test("a node: charts, pods, one of its pods", async () => {
	const page = await openPage(bed.url, { hash: "#/node/node-0003" });
	await rows(page, "Pods of the node").first().waitFor();
	await page.locator(".plot canvas").nth(1).waitFor();
	await page.getByText("Values as a table").first().click();
	await examine(page, "node");
	const pods = (await bed.get("/v1/pods?node=node-0003&limit=5000")).items;
	assert.equal(await rows(page, "Pods of the node").count(), Math.min(50, pods.length));
	await rows(page, "Pods of the node").first().getByRole("link").click();
	await rows(page, "Containers").first().waitFor();
	await page.locator(".plot canvas").nth(1).waitFor();
	await examine(page, "pod");
	await page.close();
});

test("a node that is not there", async () => {
	const page = await openPage(bed.url, { hash: "#/node/nobody", allowed: /404/ });
	await page.getByText(/no agent has reported from a node "nobody"/).waitFor();
	await page.close();
});

test("limits: sorted, over-subscribed ones alone", async () => {
	const page = await openPage(bed.url, { hash: "#/limits" });
	await rows(page, "Limits of CPU").first().waitFor();
	await examine(page, "limits");
	await page.getByLabel("over-subscribed only").check();
	const fleet = await bed.get("/v1/fleet?columns=limitRatio.declared.cpu,limitRatio.kernel.cpu");
	const over = fleet.rows.filter(([declared, kernel]) => declared > 1 || kernel > 1).length;
	assert.ok(over > 0);
	await until("over-subscribed nodes", async () => (await rows(page, "Limits of CPU").count()) === over);
	await page.getByRole("combobox", { name: /^Resource/ }).selectOption("memory");
	await rows(page, "Limits of Memory").first().waitFor();
	await page.close();
});

test("quotas: bars, loans, findings, who would go", async () => {
	const page = await openPage(bed.url, { hash: "#/quotas" });
	const quotas = await bed.get("/v1/quotas");
	await until("all quotas", async () => (await rows(page, "Quotas by namespace").count()) === quotas.items.length);
	await page.getByRole("button", { name: "Compute" }).click();
	await page.getByText(/No pod would have to go/).waitFor();
	await examine(page, "quotas");
	await page.close();
});

test("drain: the wave, moves, verdicts, history", async () => {
	const page = await openPage(bed.url, { hash: "#/drain" });
	await page.getByText(/may be drained now, together/).waitFor();
	await page.getByLabel("moves as lines").check();
	const plan = () => bed.get("/v1/drain");
	await until("the moves of the wave", async () => (await rows(page, "Moves of the wave").count()) === (await plan()).wave.pods);
	await rows(page, "History of decisions").first().waitFor();
	await examine(page, "drain");
	await page.getByRole("button", { name: /^drain \d/ }).click();
	await until("nodes that go", async () => (await rows(page, "Nodes: drain").count()) === (await plan()).verdicts.drain);
	await page.getByRole("combobox", { name: /^Columns/ }).selectOption("used");
	assert.deepEqual(page.faults(), []);
	await page.close();
});

/* A report by hand: the bed has no actuator. */
function report(body) {
	return fetch(`${bed.url}/v1/act`, { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ holder: "pod-1", transitions: 3, acts: ["drain"], ...body }) });
}

test("drain: what the actuator does, and its pause", async () => {
	const page = await openPage(bed.url, { hash: "#/drain" });
	await page.getByText("No actuator has reported").waitFor();
	const nodes = [
		{ name: "node-0001", phase: "evicting", moved: 3, of: 9, message: "waits for a budget" },
		{ name: "node-0002", phase: "drained", moved: 4, of: 4, since: "2026-01-31T12:00:00Z" },
	];
	const destinations = [{ node: "node-0003", cpuPromised: 1.25, cpuMeasured: 1.75, cpuCap: 1.5, memoryPromised: 2 ** 30, memoryMeasured: 2 ** 31, contention: 0.02 }];
	assert.equal((await report({ paused: false, nodes, destinations })).status, 200);
	await until("both nodes", async () => (await rows(page, "Nodes under way").count()) === 2);
	assert.match(await rows(page, "Nodes under way").first().textContent(), /node-0001evicting3 of 9-waits for a budget/);
	assert.match(await rows(page, "promised and measured").first().textContent(), /1\.25 → 1\.751\.50 above1\.0Gi → 2\.0Gi2%/);
	await examine(page, "drain-actuator");

	await page.getByRole("button", { name: "Pause the actuator" }).click();
	await page.getByRole("button", { name: "Asked to pause" }).waitFor();
	const [request] = (await bed.get("/v1/act")).requests;
	assert.deepEqual([request.action, request.state], ["pause", "waiting"]);
	await report({ paused: true, requests: [{ id: request.id, state: "done" }] });
	await page.getByRole("button", { name: "Resume the actuator" }).click();
	await page.getByRole("button", { name: "Asked to resume" }).waitFor();
	assert.match(await rows(page, "Requests to the actuator").first().textContent(), /resume.*waiting/);
	assert.deepEqual(page.faults(), []);
	await page.close();
});

/* Another site's page has no way to post: neither as JSON, nor by a form, which needs no permission of the browser. */
test("a page of another site asks the actuator for nothing", async () => {
	const before = (await bed.get("/v1/act")).requests.length;
	const stranger = await Bed.open("stranger");
	try {
		await until("another site", async () => (await fetch(`${stranger.url}/healthz`)).ok);
		const page = await openPage(stranger.url, { hash: "#/nodes", allowed: /./ });
		const url = `${bed.url}/v1/act/requests`;
		const sent = await page.evaluate(
			async ([to]) => {
				const body = JSON.stringify({ action: "pause" });
				const types = ["application/json", "text/plain"];
				const tries = types.map((type) => fetch(to, { method: "POST", mode: type === "text/plain" ? "no-cors" : "cors", headers: { "Content-Type": type }, body }));
				return (await Promise.allSettled(tries)).map((t) => t.status);
			},
			[url],
		);
		assert.equal(sent.length, 2);
		for (const headers of [{ "Content-Type": "text/plain" }, { "Content-Type": "application/json", Origin: stranger.url }, { "Content-Type": "application/json", Origin: "null" }])
			assert.ok([403, 415].includes((await fetch(url, { method: "POST", headers, body: '{"action":"pause"}' })).status));
		assert.equal((await bed.get("/v1/act")).requests.length, before);
		await page.close();
	} finally {
		await stranger.close();
	}
});

test("slack: a row for each class", async () => {
	const page = await openPage(bed.url, { hash: "#/slack" });
	await rows(page, "Classes of placeholders").first().waitFor();
	await examine(page, "slack");
	await page.close();
});

test("fit: a manifest in YAML, scores with their terms, refusals", async () => {
	const page = await openPage(bed.url, { hash: "#/fit", allowed: /400/ });
	await page.getByRole("button", { name: "Find nodes" }).click();
	await page.getByText(/of 200 nodes/).waitFor();
	await page.getByRole("button", { name: /^Explain/ }).first().click();
	await page.getByText("cpuMu").first().waitFor();
	await examine(page, "fit");
	await page.getByLabel(/A pod, or what/).fill("kind: Pod\nspec: {containers: [{name: c, resources: {requests: {cpu: 1000}}}]}");
	await page.getByRole("button", { name: "Find nodes" }).click();
	await page.getByText("on no node").waitFor();
	await page.getByText("NodeResourcesFit").first().waitFor();
	await page.getByLabel(/A pod, or what/).fill("a: [");
	await page.getByRole("button", { name: "Find nodes" }).click();
	await page.getByRole("alert").getByText(/pod: manifest:/).waitFor();
	await page.close();
});

test("fit: a late explanation does not replace a newer one", async () => {
	const page = await openPage(bed.url, { hash: "#/fit" });
	const explain = page.getByRole("button", { name: /^Explain/ });
	const late = (node) => ({ items: [{ node, plugins: [{ name: "Late", score: 1, reason: "a late answer" }] }] });
	let answerFirst;
	await page.route("**/v1/scores", async (route) => {
		const { explain: wanted, nodes } = route.request().postDataJSON();
		if (!wanted || answerFirst) return route.continue();
		answerFirst = () => route.fulfill({ json: late(nodes[0]) });
	});
	await page.getByRole("button", { name: "Find nodes" }).click();
	await explain.first().click();
	await until("the first question", () => answerFirst);
	await explain.nth(1).click();
	await page.getByText("cpuMu").first().waitFor();
	const answered = page.waitForEvent("requestfinished", (r) => r.url().endsWith("/v1/scores"));
	await answerFirst();
	await answered;
	await page.evaluate(() => new Promise((resolve) => setTimeout(() => requestAnimationFrame(resolve))));
	assert.equal(await page.getByText("a late answer").count(), 0);
	assert.ok((await page.getByText("cpuMu").count()) > 0);
	await page.close();
});

test("a chart stays while its values do, and zero is a value", async () => {
	const page = await openPage(bed.url, { hash: "#/node/node-0003" });
	await page.locator(".plot canvas").nth(1).waitFor();
	const history = await bed.get("/v1/nodes/node-0003/history");
	for (const item of history.items) item.cpuMillicores = { mean: 0, stddev: 0, min: 0, max: 0 };
	let reads = 0;
	await page.route("**/history", (route) => (reads++ ? route.fulfill({ status: 304 }) : route.fulfill({ json: history, headers: { ETag: '"idle"' } })));
	await page.goto(`${bed.url}/#/nodes`);
	await page.locator("h1").waitFor();
	await page.goto(`${bed.url}/#/node/node-0003`);
	await page.locator(".plot canvas").nth(1).waitFor();
	assert.equal(await page.getByText("Not measured yet").count(), 0);
	await page.evaluate(() => document.querySelectorAll(".plot canvas").forEach((c) => (c.old = true)));
	let updates = 0;
	page.on("requestfinished", async (r) => (updates += r.url().endsWith("/v1/nodes/node-0003") && (await r.response()).status() === 200));
	await until("updates of the node", () => updates >= 2);
	assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll(".plot canvas")].map((c) => c.old)), [true, true]);
	await page.close();
});

test("inherited members name no view, measure or resource", async () => {
	const page = await openPage(bed.url, { hash: "#/constructor" });
	await head(page, "Not found");
	for (const [hash, text] of [["nodes?metric=constructor", "Nodes"], ["risk?resource=toString", "Risk"], ["quotas?resource=valueOf", "Quotas"]]) {
		await page.goto(`${bed.url}/#/${hash}`);
		await head(page, text);
		await page.locator(".table tbody tr:visible").first().waitFor();
	}
	assert.deepEqual(page.faults(), []);
	await page.close();
});

for (const [name, width, height, scheme] of [
	["narrow", 360, 740, "light"],
	["dark", 1280, 900, "dark"],
	["wide", 2560, 1300, "light"],
])
	test(`all views ${name}`, async () => {
		for (const view of ["nodes?group=pool", "risk", "node/node-0003", "limits", "quotas", "drain", "slack", "fit"]) {
			const page = await openPage(bed.url, { hash: `#/${view}`, width, height, scheme });
			await page.locator("h1").waitFor();
			if (view !== "fit") await page.locator(".table tbody tr:visible").first().waitFor();
			await examine(page, `${view.replace(/\W.*/, "")}-${name}`);
			await page.close();
		}
	});
