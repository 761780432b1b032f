/*
 * What the tests of the web page run on: aggregators, simulated agents, this machine's agent, and Debian's
 * Chromium. Each bed has free ports and a folder below build/page; close() ends all it started.
 *
 * A page fails its test if the browser logs an error, a script throws, or anything but its own server is asked.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { X509Certificate, createHash, randomBytes, randomInt } from "node:crypto";
import { createServer } from "node:net";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.PAGE_MODULES}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const BIN = process.env.BIN ?? "build/bin";
const TB = process.env.TB ?? "build/tests";
const OUT = "build/page";

/* Below those that the kernel gives to connections of other tests, before the aggregator listens. */
async function freePort() {
	const [first] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split("\t");
	for (;;) {
		const port = randomInt(10000, Number(first));
		const server = createServer().listen(port, "127.0.0.1");
		const free = await new Promise((resolve) => server.once("listening", () => resolve(true)).once("error", () => resolve(false)));
		if (!free) continue;
		await new Promise((resolve) => server.close(resolve));
		return port;
	}
}

/* Until the condition holds; what it last threw or said is the reason of the failure. */
export async function until(what, condition, seconds = 30) {
	const end = Date.now() + seconds * 1000;
	for (;;) {
		const held = await Promise.resolve().then(condition).catch(() => false);
		if (held) return held;
		assert.ok(Date.now() < end, `${what}: not within ${seconds} s`);
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

/* The objects of a simulated cluster, as kubectl prints them. */
export function cluster(nodes) {
	const file = `${OUT}/cluster-${nodes}.json`;
	execFileSync(`${TB}/fleet`, ["--nodes", String(nodes), "--dump", file]);
	return readFileSync(file);
}

export class Bed {
	/* objects: of a cluster, null for a machine without Kubernetes; options of the aggregator. */
	static async open(name, { objects = null, options = [] } = {}) {
		const bed = new Bed();
		mkdirSync(OUT, { recursive: true });
		bed.dir = mkdtempSync(`${OUT}/${name}-`);
		bed.children = [];
		[bed.port, bed.ingest] = [await freePort(), await freePort()];
		bed.url = `http://127.0.0.1:${bed.port}`;
		writeFileSync(`${bed.dir}/key`, randomBytes(32), { mode: 0o600 });
		bed.options = options;
		if (objects) writeFileSync(`${bed.dir}/cluster.json`, objects);
		bed.source = objects ? ["--snapshot", `${bed.dir}/cluster.json`] : ["--standalone"];
		bed.start();
		return bed;
	}

	run(program, args, name) {
		const log = openSync(`${this.dir}/${name}.log`, "a");
		const child = spawn(program, args, { stdio: ["ignore", log, log] });
		this.children.push(child);
		return child;
	}

	start() {
		const at = ["--listen", `127.0.0.1:${this.port}`, "--ingest", `tcp://127.0.0.1:${this.ingest}`, "--key-file", `${this.dir}/key`];
		this.aggregator = this.run(`${BIN}/evenkeel-aggregator`, [...at, ...this.source, ...this.options], "aggregator");
	}

	async stop() {
		const ended = new Promise((resolve) => this.aggregator.once("exit", resolve));
		this.aggregator.kill("SIGTERM");
		await ended;
	}

	agents(nodes, interval = "2s") {
		const args = ["--nodes", String(nodes), "--interval", interval, "--aggregator", `tcp://127.0.0.1:${this.ingest}`, "--key-file", `${this.dir}/key`];
		this.run(`${TB}/fleet`, [...args, "--report", `${this.dir}/report.json`], "fleet");
	}

	agent() {
		this.run(`${BIN}/evenkeel-agent`, ["--aggregator", `tcp://127.0.0.1:${this.ingest}`, "--key-file", `${this.dir}/key`, "--interval", "2s", "--node-name", "this-machine"], "agent");
	}

	async get(path, headers = {}) {
		const response = await fetch(this.url + path, { headers });
		return response.json();
	}

	heard(nodes) {
		return until(`${nodes} nodes`, async () => (await this.get("/v1/fleet?columns=name")).total.source.fresh >= nodes, 90);
	}

	async close() {
		for (const child of this.children) {
			if (child.exitCode !== null || child.signalCode !== null) continue;
			const ended = new Promise((resolve) => child.once("exit", resolve));
			child.kill("SIGTERM");
			await ended;
		}
	}
}

/* --- pages */

const debian = (...args) => ({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", ...args] });

let browser;

export async function closeBrowser() {
	await browser?.close();
}

/*
 * A page of that server. faults() are errors it logged, scripts that threw and requests to elsewhere;
 * messages that match `allowed` are none.
 */
export async function openPage(url, { hash = "#/nodes", width = 1280, height = 900, scheme = "light", allowed = /^$/, context = {}, init } = {}) {
	browser ??= await chromium.launch(debian());
	const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme, ...context });
	const faults = [];
	page.on("console", (m) => ["error", "warning"].includes(m.type()) && !allowed.test(m.text()) && faults.push(m.text()));
	page.on("pageerror", (e) => faults.push(String(e)));
	page.on("request", (r) => !r.url().startsWith(url) && faults.push(`a request to ${r.url()}`));
	page.faults = () => faults;
	if (init) await page.addInitScript(init);
	await page.goto(`${url}/${hash}`);
	return page;
}

/* A browser of its own, with its files in `profile`, that trusts the key of that certificate; its caller closes it. */
export function openTrusting(profile, certificate) {
	const key = new X509Certificate(readFileSync(certificate)).publicKey.export({ type: "spki", format: "der" });
	return chromium.launchPersistentContext(profile, debian(`--ignore-certificate-errors-spki-list=${createHash("sha256").update(key).digest("base64")}`));
}

/* No fault, nothing that axe-core calls serious, nothing wider than the window; keeps a picture. */
export async function examine(page, name) {
	assert.deepEqual(page.faults(), []);
	/* The policy of the page forbids scripts of others in it; the browser's own protocol may run them. */
	const found = await page.evaluate(`${axe}; axe.run(document, {resultTypes: ["violations"]})`);
	const serious = found.violations.filter((v) => ["serious", "critical"].includes(v.impact));
	assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary}`).slice(0, 3)}`), []);
	const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
	assert.ok(wide <= window, `${name}: ${wide} pixels wide in a window of ${window}`);
	await page.screenshot({ path: `${OUT}/${name}.png`, fullPage: true });
}
