/* Quantities as the command prints them (shared/units.h): rounding decides the unit. Unknown is "-". */

const UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const TEBIBYTE = 2 ** 40;
const known = (x) => typeof x === "number" && Number.isFinite(x);

/* Millicores below one core, cores from there on. */
export function cpu(milli) {
	if (!known(milli)) return "-";
	if (milli < 0.05) return "0m";
	if (milli < 9.95) return milli.toFixed(1) + "m";
	if (milli < 999.5) return milli.toFixed(0) + "m";
	return (milli / 1000).toFixed(2);
}

/* "300m/4": capacities of whole cores lose their decimals. */
export function cpuOf(milli, capacity) {
	if (!known(milli) && !known(capacity)) return "-";
	return cpu(milli) + "/" + (known(capacity) && capacity % 1000 === 0 ? capacity / 1000 : cpu(capacity));
}

function scale(bytes) {
	let i = 0;
	for (; i + 1 < UNITS.length && bytes >= (i ? 1023.95 : 1023.5); i++) bytes /= 1024;
	return { value: bytes, unit: UNITS[i] };
}

export function bytes(amount) {
	if (!known(amount)) return "-";
	const s = scale(amount);
	return s.value.toFixed(s.unit ? 1 : 0) + s.unit;
}

/* Values below 1 Ti in their own unit, as tenths of a Ti are too coarse. */
function smallPart(amount) {
	const s = scale(amount);
	return s.value.toFixed(s.unit && s.value < 99.95 ? 1 : 0) + s.unit;
}

/* "6.2/15.6Gi": in the unit of the capacity. */
export function bytesOf(amount, capacity) {
	if (!known(amount) && !known(capacity)) return "-";
	if (!known(amount) || !known(capacity) || capacity <= 0) return bytes(amount) + "/" + bytes(capacity);
	const s = scale(capacity);
	const whole = s.value.toFixed(1).replace(/\.0$/, "");
	const part = amount * (s.value / capacity);
	const small = amount > 0 && part < 0.95 && capacity >= TEBIBYTE;
	return (small ? smallPart(amount) : part.toFixed(1)) + "/" + whole + s.unit;
}

/* 0.123 is "12%"; a positive share that rounds to 0 is "<1%". */
export function percent(share) {
	if (!known(share)) return "-";
	return share > 0 && share < 0.005 ? "<1%" : Math.round(share * 100) + "%";
}

const two = (n) => String(n).padStart(2, "0");

/* "3s", "1m12s", "2h05m", "3d4h" */
export function age(seconds) {
	if (!known(seconds)) return "-";
	const s = Math.max(0, Math.floor(seconds));
	if (s < 60) return s + "s";
	if (s < 3600) return Math.floor(s / 60) + "m" + two(s % 60) + "s";
	if (s < 86400) return Math.floor(s / 3600) + "h" + two(Math.floor((s % 3600) / 60)) + "m";
	return Math.floor(s / 86400) + "d" + Math.floor((s % 86400) / 3600) + "h";
}

/* A limit: null is "none", an absent one unknown. */
export const limit = (amount, print) => (amount === null ? "none" : print(amount));

/* Local time of day of an RFC 3339 time, with the date where it is not today's. */
export function time(text) {
	const t = new Date(text);
	if (Number.isNaN(t.getTime())) return "-";
	const day = t.toDateString() === new Date().toDateString() ? "" : t.toLocaleDateString() + " ";
	return day + two(t.getHours()) + ":" + two(t.getMinutes()) + ":" + two(t.getSeconds());
}

/* NaN where one is missing or the whole is 0. */
export const share = (part, whole) => (known(part) && whole > 0 ? part / whole : NaN);

/* plural(2, "node") is "2 nodes". */
export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/* The order of names: "node-9" comes before "node-10". */
export const order = new Intl.Collator(undefined, { numeric: true }).compare;
