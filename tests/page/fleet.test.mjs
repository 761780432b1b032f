/* The page at 5000 nodes: the first picture, the main thread's work of an update, what a refresh transfers. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Bed, closeBrowser, cluster, examine, openPage, until } from "./bed.mjs";

const NODES = 5000;
/* Budgets are for a machine of its own; where tests share one, time of the main thread alone counts. */
const FIRST_MS = 1000;
const UPDATE_MS = 50;
const REFRESH_BYTES = 1 << 20;

let bed;

before(async () => {
	bed = await Bed.open("fleet", { objects: cluster(NODES) });
	bed.agents(NODES, "5s");
	await bed.heard(NODES);
});

after(async () => {
	await closeBrowser();
	await bed.close();
});

test("5000 nodes", async (t) => {
	const page = await openPage(bed.url, {
		init: () => {
			const look = () => {
				const canvas = document.querySelector("canvas");
				if (canvas?.height > 100) window.firstPicture = performance.now();
				else requestAnimationFrame(look);
			};
			requestAnimationFrame(look);
		},
	});
	const session = await page.context().newCDPSession(page);
	await session.send("Performance.enable", { timeDomain: "threadTicks" });
	const measure = async () => Object.fromEntries((await session.send("Performance.getMetrics")).metrics.map((m) => [m.name, m.value]));
	const updates = [];
	page.on("response", (r) => /fleet.*cpuMillicores/.test(r.url()) && updates.push(r));

	await page.locator(".table tbody tr:visible").first().waitFor();
	const first = await page.evaluate(() => window.firstPicture);
	const begin = await measure();
	updates.length = 0;
	await until("three updates", () => updates.filter((r) => r.status() === 200).length >= 3, 60);
	await page.waitForTimeout(500);
	const end = await measure();
	const spent = (...names) => (names.reduce((sum, name) => sum + end[name] - begin[name], 0) * 1000) / 3;
	const work = spent("ScriptDuration", "LayoutDuration", "RecalcStyleDuration");
	const bytes = (await updates.find((r) => r.status() === 200).body()).length;
	t.diagnostic(`first picture after ${Math.round(first)} ms; ${work.toFixed(1)} ms of scripts, styles and layout an update, ${spent("TaskDuration").toFixed(1)} ms with all else of its thread; ${bytes} bytes; ${(end.JSHeapUsedSize / 1e6).toFixed(0)} MB of heap`);
	assert.ok(bytes < REFRESH_BYTES, `${bytes} bytes`);
	if (process.env.PAGE_BUDGETS) {
		assert.ok(first <= FIRST_MS, `first picture after ${first} ms`);
		assert.ok(work <= UPDATE_MS, `${work} ms an update`);
	}
	await page.getByRole("combobox", { name: /^Group/ }).selectOption("topology.kubernetes.io/zone");
	await page.getByRole("combobox", { name: /^Colour/ }).selectOption("p95");
	await page.locator("canvas").hover({ position: { x: 100, y: 60 } });
	await page.getByText(/^node-\d+$/).first().waitFor();
	await examine(page, "fleet");
	await page.close();
});

test("other views of 5000 nodes", async () => {
	/* The first plan of so many nodes takes a while. */
	await until("a plan", async () => (await bed.get("/v1/drain")).items, 120);
	for (const view of ["risk", "limits", "drain"]) {
		const page = await openPage(bed.url, { hash: `#/${view}` });
		await page.locator(".table tbody tr:visible").first().waitFor({ timeout: 60000 });
		await examine(page, `${view}-fleet`);
		await page.close();
	}
});
