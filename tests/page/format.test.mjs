/* The page prints quantities as the command does: the same cases as tests/unit/shared_units.c. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../../aggregator/page/format.js";

const CASES = [
	[format.cpu, [[NaN, "-"], [undefined, "-"], [null, "-"], [0, "0m"], [0.04, "0m"], [0.4, "0.4m"], [9.94, "9.9m"], [9.96, "10m"], [300, "300m"], [999.4, "999m"], [999.7, "1.00"], [1250, "1.25"]]],
	[format.bytes, [[NaN, "-"], [0, "0"], [512, "512"], [1023, "1023"], [1024, "1.0Ki"], [1536, "1.5Ki"], [20 * 2 ** 20, "20.0Mi"], [1023.97 * 2 ** 20, "1.0Gi"], [3.2 * 2 ** 30, "3.2Gi"]]],
	[format.percent, [[NaN, "-"], [0, "0%"], [0.001, "<1%"], [0.123, "12%"], [1.5, "150%"]]],
	[format.age, [[NaN, "-"], [-1, "0s"], [3.9, "3s"], [72, "1m12s"], [7500, "2h05m"], [274000, "3d4h"]]],
];

for (const [print, cases] of CASES)
	test(print.name, () => {
		for (const [value, text] of cases) assert.equal(print(value), text, String(value));
	});

test("parts of a capacity", () => {
	assert.equal(format.cpuOf(300, 4000), "300m/4");
	assert.equal(format.cpuOf(1250, 7800), "1.25/7.80");
	assert.equal(format.cpuOf(NaN, NaN), "-");
	assert.equal(format.bytesOf(6.2 * 2 ** 30, 16 * 2 ** 30), "6.2/16Gi");
	assert.equal(format.bytesOf(6.2 * 2 ** 30, 15.6 * 2 ** 30), "6.2/15.6Gi");
	assert.equal(format.bytesOf(245 * 2 ** 30, 1.4 * 2 ** 40), "245Gi/1.4Ti");
	assert.equal(format.bytesOf(NaN, NaN), "-");
});
