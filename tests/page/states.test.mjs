/* What happens around the views: credentials, an aggregator that restarts, hostile names, a plain machine. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { Bed, closeBrowser, cluster, examine, openPage, openTrusting, until } from "./bed.mjs";

after(closeBrowser);

const DENIED = /401/;

/* A bed for one test. */
async function withBed(name, setup, run) {
	const bed = await Bed.open(name, setup);
	try {
		await run(bed);
	} finally {
		await bed.close();
	}
}

test("a token is asked for, and kept in memory alone", () => {
	writeFileSync("build/page/tokens", "right-token-of-enough-letters-0123456789,person\n", { mode: 0o600 });
	return withBed("token", { objects: cluster(3), options: ["--token-file", "build/page/tokens"] }, async (bed) => {
		await until("an answer", async () => (await bed.get("/v1/status")).error?.code === "unauthorized");
		const page = await openPage(bed.url, { allowed: DENIED });
		const field = page.getByLabel(/Bearer token/);
		await field.waitFor();
		assert.equal(await page.locator("canvas").count(), 0);
		await examine(page, "token");
		await field.fill("wrong-token-of-enough-letters-0123456789");
		await page.getByRole("button", { name: "Use token" }).click();
		await page.getByText(/wants credentials/).waitFor();
		await field.fill("right-token-of-enough-letters-0123456789");
		await page.keyboard.press("Enter");
		await page.locator("canvas").waitFor();
		assert.equal(await field.count(), 0);
		assert.ok(!page.url().includes("token"));
		assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [0, 0, ""]);
		await page.reload();
		await field.waitFor();
		await page.close();
	});
});

/* An authority, and certificates of it below build/page. */
function certify(...names) {
	const dir = "build/page";
	const openssl = (...args) => execFileSync("openssl", args, { stdio: "ignore" });
	const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
	openssl("req", "-x509", ...key, "-days", "2", "-subj", "/CN=test", "-keyout", `${dir}/ca.key`, "-out", `${dir}/ca.crt`);
	for (const name of names) {
		openssl("req", ...key, "-subj", `/CN=${name}`, "-keyout", `${dir}/${name}.key`, "-out", `${dir}/${name}.csr`);
		writeFileSync(`${dir}/${name}.ext`, `subjectAltName=IP:127.0.0.1\nextendedKeyUsage=${name === "client" ? "client" : "server"}Auth\n`);
		openssl("x509", "-req", "-in", `${dir}/${name}.csr`, "-CA", `${dir}/ca.crt`, "-CAkey", `${dir}/ca.key`, "-CAcreateserial", "-days", "2", "-extfile", `${dir}/${name}.ext`, "-out", `${dir}/${name}.crt`);
	}
	return dir;
}

const untilServed = (url, ca) => until("the server", () => execFileSync("curl", ["-sf", "--cacert", ca, `${url}/healthz`]).toString() === "ok\n");

test("a client certificate needs no token", () => {
	const dir = certify("server", "client");
	const options = ["--tls-cert", `${dir}/server.crt`, "--tls-key", `${dir}/server.key`, "--tls-client-ca", `${dir}/ca.crt`];
	return withBed("certificate", { objects: cluster(3), options }, async (bed) => {
		const url = bed.url.replace("http:", "https:");
		await untilServed(url, `${dir}/ca.crt`);
		const without = await openPage(url, { allowed: DENIED, context: { ignoreHTTPSErrors: true } });
		await without.getByLabel(/Bearer token/).waitFor();
		await without.close();
		const clientCertificates = [{ origin: url, certPath: `${dir}/client.crt`, keyPath: `${dir}/client.key` }];
		const page = await openPage(url, { context: { ignoreHTTPSErrors: true, clientCertificates } });
		await page.locator("canvas").waitFor();
		assert.deepEqual(page.faults(), []);
		await page.close();
	});
});

test("a certificate that the browser does not trust: no page, and under an open page it is said", () => {
	const dir = certify("first", "second");
	const tls = (name) => ["--tls-cert", `${dir}/${name}.crt`, "--tls-key", `${dir}/${name}.key`];
	writeFileSync(`${dir}/tokens`, "right-token-of-enough-letters-0123456789,person\n", { mode: 0o600 });
	const token = ["--token-file", `${dir}/tokens`];
	return withBed("trust", { objects: cluster(3), options: [...tls("first"), ...token] }, async (bed) => {
		const url = bed.url.replace("http:", "https:");
		await untilServed(url, `${dir}/ca.crt`);
		await assert.rejects(openPage(url), /ERR_CERT_AUTHORITY_INVALID/);
		const browser = await openTrusting(`${bed.dir}/profile`, `${dir}/first.crt`);
		const page = await browser.newPage();
		await page.goto(`${url}/#/nodes`);
		await page.getByLabel(/Bearer token/).fill("right-token-of-enough-letters-0123456789");
		await page.keyboard.press("Enter");
		await page.locator("canvas").waitFor();
		await bed.stop();
		bed.options = [...tls("second"), ...token];
		bed.start();
		await untilServed(url, `${dir}/ca.crt`);
		await page.getByText(/Aggregator unreachable since .*certificate/).waitFor();
		assert.equal(await page.locator("canvas").count(), 1);
		await page.screenshot({ path: "build/page/untrusted.png" });
		await browser.close();
	});
});

test("an aggregator that restarts: it is said, what is known stays, and the page recovers", () =>
	withBed("restart", { objects: cluster(20) }, async (bed) => {
		bed.agents(20);
		await bed.heard(20);
		const page = await openPage(bed.url, { allowed: /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/ });
		await page.locator("canvas").waitFor();
		await bed.stop();
		await page.getByText(/Aggregator unreachable since \d\d:\d\d:\d\d, retrying/).waitFor();
		assert.equal(await page.locator("canvas").count(), 1);
		await page.screenshot({ path: "build/page/unreachable.png" });
		bed.start();
		await until("a connection", async () => (await page.getByText(/Aggregator unreachable/).count()) === 0);
		assert.deepEqual(page.faults(), []);
		await page.close();
	}));

test("a view first opened while the aggregator restarts is loaded when it is back", () =>
	withBed("late-view", { objects: cluster(3) }, async (bed) => {
		await until("the server", async () => (await fetch(`${bed.url}/healthz`)).ok);
		const page = await openPage(bed.url, { allowed: /ERR_/ });
		await page.locator("canvas").waitFor();
		await bed.stop();
		await page.getByRole("link", { name: "Slack" }).click();
		await page.getByText(/could not be loaded, retrying/).waitFor();
		bed.start();
		await page.getByRole("heading", { level: 1, name: "Slack" }).waitFor();
		await page.close();
	}));

/* Makes all sources read again now, as a tab that is shown again does. */
const readAgain = (page) => page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
const BUSY = { status: 503, json: { error: { code: "busy", message: "too many requests" } } };

test("an error answer stands above older data, whose time stays", () =>
	withBed("errors", { objects: cluster(3) }, async (bed) => {
		await until("a plan", async () => (await bed.get("/v1/drain")).items);
		for (const view of ["nodes", "risk", "limits", "quotas", "drain", "slack", "node/node-0001"]) {
			const page = await openPage(bed.url, { hash: `#/${view}`, allowed: /404|503/ });
			const problem = page.getByText("too many requests. What is shown is older.");
			await page.locator(".table tbody tr:visible, .empty").first().waitFor();
			await until("all answers", async () => !(await page.getByText(/^Reading/).count()));
			const shown = await page.locator("main > *").count();
			let refused = 0;
			await page.route("**/v1/**", (route) => (refused++, route.fulfill(BUSY)));
			await readAgain(page);
			await problem.first().waitFor();
			assert.ok((await page.locator("main > *").count()) >= shown, view);
			const seen = await page.locator(".seen").textContent();
			const before = refused;
			await until("the next second, and more refusals", () => refused > before && new Date().toTimeString().slice(0, 8) > seen.slice(-8));
			assert.equal(await page.locator(".seen").textContent(), seen, view);
			await page.unroute("**/v1/**");
			await readAgain(page);
			await until("a recovery", async () => !(await problem.count()));
			assert.deepEqual(page.faults(), []);
			await page.close();
		}
	}));

test("an answer that breaks off is none", () =>
	withBed("broken", { objects: cluster(3) }, async (bed) => {
		await until("the server", async () => (await fetch(`${bed.url}/healthz`)).ok);
		const page = await openPage(bed.url, { hash: "#/slack" });
		await page.getByRole("heading", { level: 1, name: "Slack" }).waitFor();
		await page.evaluate(() => {
			window.fetch = async () => new Response(new ReadableStream({ pull: (c) => c.error(new TypeError("broken off")) }));
		});
		await readAgain(page);
		await page.getByText(/Aggregator unreachable/).waitFor();
		await page.close();
	}));

test("a changed first part of a list is shown although a later part failed once", () =>
	withBed("parts", { objects: cluster(3) }, async (bed) => {
		await until("the server", async () => (await fetch(`${bed.url}/healthz`)).ok);
		const page = await openPage(bed.url, { hash: "#/nodes", allowed: /503/ });
		await page.locator("canvas").waitFor();
		const list = { first: "old-pod", second: true };
		const part = (name, more) => ({ apiVersion: "evenkeel.io/v1", kind: "PodList", items: [{ namespace: "a", name }], ...more });
		await page.route("**/v1/pods?*", (route) => {
			const later = route.request().url().includes("continue=");
			if (later && !list.second) return route.fulfill(BUSY);
			const ETag = later ? '"second"' : `"${list.first}"`;
			if (route.request().headers()["if-none-match"] === ETag) return route.fulfill({ status: 304 });
			return route.fulfill({ headers: { ETag }, json: later ? part("last-pod") : part(list.first, { continue: "x" }) });
		});
		await page.goto(`${bed.url}/#/node/node-0001`);
		await page.getByRole("link", { name: "a/old-pod" }).waitFor();
		Object.assign(list, { first: "new-pod", second: false });
		await readAgain(page);
		await page.getByText(/pods: too many requests/).waitFor();
		list.second = true;
		await page.getByRole("link", { name: "a/new-pod" }).waitFor();
		await page.getByRole("link", { name: "a/last-pod" }).waitFor();
		await page.close();
	}));

test("what a view throws is said in its place, and other views work", () =>
	withBed("thrown", { objects: cluster(3) }, async (bed) => {
		await until("the server", async () => (await fetch(`${bed.url}/healthz`)).ok);
		const page = await openPage(bed.url, { hash: "#/limits", allowed: /TypeError/ });
		await page.route("**/v1/slack", (route) => route.fulfill({ json: { items: 1 } }));
		await page.goto(`${bed.url}/#/slack`);
		await page.getByText(/The view failed: TypeError/).waitFor();
		await page.getByRole("link", { name: "Risk" }).click();
		await page.getByRole("heading", { level: 1, name: "Risk" }).waitFor();
		assert.deepEqual(page.faults(), []);
		await page.close();
	}));

/* One full node: "lender" is within its min and waits, "borrower" uses what is lender's. */
function lending() {
	const object = (apiVersion, kind, namespace, name, more) => ({ apiVersion, kind, metadata: { namespace, name, uid: `${kind}-${namespace}-${name}` }, ...more });
	const quota = (namespace, cpu) => object("scheduling.x-k8s.io/v1alpha1", "ElasticQuota", namespace, "quota", { spec: { min: { cpu }, max: { cpu: "4" } } });
	const pod = (namespace, name, nodeName) =>
		object("v1", "Pod", namespace, name, {
			spec: { nodeName, priority: 0, containers: [{ name: "c", resources: { requests: { cpu: "1" } } }] },
			status: { phase: nodeName ? "Running" : "Pending" },
		});
	const room = { cpu: "4", memory: "8Gi", pods: "110" };
	const node = { ...object("v1", "Node", undefined, "full", { status: { allocatable: room, capacity: room, conditions: [{ type: "Ready", status: "True" }] } }) };
	const items = [node, quota("lender", "3"), quota("borrower", "1"), pod("lender", "wants")];
	for (let i = 0; i < 4; i++) items.push(pod("borrower", `has-${i}`, "full"));
	return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

test("quotas: a pod that would go for a pending one within its min", () =>
	withBed("lending", { objects: lending() }, async (bed) => {
		const answer = await until("a pod that would go", async () => (await bed.get("/v1/quotas/reclaim")).items?.[0] && bed.get("/v1/quotas/reclaim"));
		const [item] = answer.items;
		const page = await openPage(bed.url, { hash: "#/quotas" });
		await page.route("**/v1/quotas/reclaim", (route) => route.fulfill({ json: { ...answer, leftOut: 3 } }));
		await page.getByRole("button", { name: "Compute" }).click();
		await page.getByRole("heading", { level: 3, name: "lender/wants on full" }).waitFor();
		assert.match(item.text, /quota lender is within its min/);
		await page.getByText(item.text).waitFor();
		assert.deepEqual(await page.locator(".claim li").allTextContents(), item.victims.map((v) => `${v.namespace}/${v.name}`));
		assert.equal(item.victims.length, 1);
		await page.getByText(/3 pending pods not examined/).waitFor();
		assert.deepEqual(page.faults(), []);
		await page.close();
	}));

/* What would run, break out of an attribute, reorder text or fill the screen if it were not text. */
const ATTACKS = [
	`<img src=x onerror="window.hurt=1">`,
	`"><script>window.hurt=1</script>`,
	`' onmouseover='window.hurt=1`,
	"javascript:window.hurt=1",
	"${window.hurt=1}",
	"{{constructor.constructor('window.hurt=1')()}}",
	"../../%2e%2e/?a=b#c&d",
	"\u202Eevil\u0000\u001b[31m".replace("\u0000", ""),
	"n".repeat(253),
	"a b\tc",
	"__proto__",
];

/* The same cluster with hostile names of nodes, pods, namespaces and labels. */
function hostile(objects) {
	const attacked = new Map();
	const attack = (name) => {
		if (!attacked.has(name)) attacked.set(name, attacked.size < ATTACKS.length ? ATTACKS[attacked.size] : `${ATTACKS[attacked.size % ATTACKS.length]} ${attacked.size}`);
		return attacked.get(name);
	};
	const list = JSON.parse(objects);
	const namespaces = new Map();
	for (const o of list.items) {
		if (o.kind === "Node") {
			o.metadata.name = attack(o.metadata.name);
			o.metadata.labels.pool = attack(`pool ${o.metadata.name}`);
		}
		if (o.metadata.namespace && o.metadata.namespace !== "kube-system") {
			const at = namespaces.get(o.metadata.namespace) ?? `${ATTACKS[namespaces.size % ATTACKS.length]}/${namespaces.size}`;
			namespaces.set(o.metadata.namespace, at);
			o.metadata.namespace = at;
		}
		if (o.kind === "Pod") {
			o.metadata.name = attack(o.metadata.name);
			if (o.spec.nodeName) o.spec.nodeName = attack(o.spec.nodeName);
		}
	}
	return JSON.stringify(list);
}

test("hostile names are text in every view", () =>
	withBed("hostile", { objects: hostile(cluster(11)) }, async (bed) => {
		const nodes = (await until("nodes", async () => (await bed.get("/v1/fleet")).rows?.length && (await bed.get("/v1/fleet")))).rows;
		assert.ok(nodes.some(([name]) => name.includes("<img")), "the names are not as given");
		for (const view of ["nodes?group=pool", "risk", "limits", "quotas", "drain", "slack", ...nodes.map(([name]) => `node/${encodeURIComponent(name)}`)]) {
			const page = await openPage(bed.url, { hash: `#/${view}`, allowed: /404|503|400/ });
			await page.locator("h1").waitFor();
			if (view === "nodes?group=pool") await page.locator(".table tbody tr:visible").nth(5).waitFor();
			if (view.startsWith("node/")) assert.equal(await page.locator("h1").textContent(), decodeURIComponent(view.slice(5)));
			assert.equal(await page.evaluate(() => window.hurt), undefined, view);
			assert.equal(await page.locator("img:not(.brand img), script:not([src='/page/main.js']), iframe").count(), 0, view);
			assert.equal(await page.locator("a:not([href^='#'])").count(), 0, view);
			const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
			assert.ok(wide <= window, `${view}: ${wide} pixels wide`);
			assert.deepEqual(page.faults(), []);
			await page.close();
		}
	}));

test("a machine without Kubernetes: its agent's use, no requests", () =>
	withBed("machine", {}, async (bed) => {
		bed.agent();
		await bed.heard(1);
		const page = await openPage(bed.url, { allowed: /404|503/ });
		await page.locator("canvas").waitFor();
		assert.equal(await page.getByRole("button", { name: "CPU-REQ%" }).count(), 0);
		await page.getByText("no Kubernetes API").waitFor();
		await examine(page, "machine");
		await page.locator("canvas").click({ position: { x: 8, y: 8 } });
		await page.getByRole("heading", { level: 1, name: "this-machine" }).waitFor();
		await page.locator(".table tbody tr:visible").first().waitFor();
		await examine(page, "machine-node");
		for (const view of ["limits", "quotas", "drain", "slack"]) {
			await page.goto(`${bed.url}/#/${view}`);
			await page.locator(".empty, .problem").first().waitFor();
		}
		assert.deepEqual(page.faults(), []);
		await page.close();
	}));

test("headers: nothing is stored, framed or loaded from elsewhere", () =>
	withBed("headers", { objects: cluster(3) }, async (bed) => {
		await until("the server", async () => (await fetch(`${bed.url}/healthz`)).ok);
		for (const path of ["/", "/page/main.js", "/page/style.css"]) {
			const response = await fetch(bed.url + path);
			assert.equal(response.status, 200);
			assert.match(response.headers.get("Content-Security-Policy"), /default-src 'self'.*frame-ancestors 'none'/);
			assert.equal(response.headers.get("X-Content-Type-Options"), "nosniff");
			assert.equal(response.headers.get("Referrer-Policy"), "no-referrer");
			const again = await fetch(bed.url + path, { headers: { "If-None-Match": response.headers.get("ETag") } });
			assert.equal(again.status, 304);
		}
	}));
