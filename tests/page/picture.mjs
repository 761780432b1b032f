/* See tests/page/picture. */
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { Bed, closeBrowser, cluster, openPage } from "./bed.mjs";

test("picture", async () => {
	const bed = await Bed.open("picture", { objects: cluster(200) });
	bed.agents(200);
	await bed.heard(200);
	const page = await openPage(bed.url, { hash: "#/nodes?group=pool", height: 900 });
	await page.locator(".table tbody tr:visible").first().waitFor();
	await page.waitForTimeout(2000);
	const session = await page.context().newCDPSession(page);
	const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 80 });
	writeFileSync("packaging/docs/page.webp", Buffer.from(data, "base64"));
	await closeBrowser();
	await bed.close();
});
