/* See tests/page/picture. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { Bed, closeBrowser, cluster, openPage, until } from "./bed.mjs";

async function keep(page, file, clip) {
	const session = await page.context().newCDPSession(page);
	const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 80, clip });
	writeFileSync(`packaging/docs/${file}`, Buffer.from(data, "base64"));
}

const COLOURS = { 31: "#ff7b72", 32: "#7ee787", 33: "#e3b341" };

/* Text with the terminal's colours as HTML. */
const asHtml = (text) =>
	text
		.replace(/[&<]/g, (c) => ({ "&": "&amp;", "<": "&lt;" })[c])
		.replace(/\x1b\[(\d*)m/g, (_, code) => `</span><span style="color: ${COLOURS[code] ?? "inherit"}; font-weight: ${code === "1" ? "bold" : "normal"}">`);

const COMMANDS = ["nodes --sort-by=cpu --limit=5", "pods --sort-by=throttled --limit=4", "quota shop", "slack --limit=4"];

test("pictures", async () => {
	const bed = await Bed.open("picture", { objects: cluster(200) });
	try {
		bed.agents(200);
		await bed.heard(200);
		const page = await openPage(bed.url, { hash: "#/nodes?group=pool", height: 900 });
		await page.locator(".table tbody tr:visible").first().waitFor();
		await page.waitForTimeout(2000);
		await keep(page, "page.webp");
		const lines = [];
		for (const c of COMMANDS) {
			/* The first plans are older than the first measurements. */
			const run = () => execFileSync("build/bin/evenkeel", [...c.split(" "), "--server", bed.url, "--color=always"], { encoding: "utf8", stdio: "pipe" });
			lines.push(`<b>$ evenkeel ${c}</b>\n<span>${asHtml(await until(c, run))}</span>`);
		}
		await page.goto("about:blank");
		await page.setContent(`<pre style="display: inline-block; margin: 0; padding: 16px; background: #0d1117; color: #e6edf3; font: 13px/1.35 'DejaVu Sans Mono', monospace">${lines.join("\n")}</pre>`);
		await keep(page, "terminal.webp", { ...(await page.locator("pre").boundingBox()), scale: 1 });
	} finally {
		await closeBrowser();
		await bed.close();
	}
});
