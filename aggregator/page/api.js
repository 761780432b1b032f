/*
 * Requests to the API. A source polls one path while a view listens to it, sends If-None-Match, and
 * keeps the newest answer, so views that need the same path share its requests. The token is a
 * variable of this module: it is in the memory of the tab and nowhere else.
 *
 *     200 --> data    304 --> the same data    401 --> connection.denied    no answer --> connection.since
 *     other errors --> source.error, beside the data of before
 *
 * After a failure a source retries after 1, 2, 4 .. 10 s; hidden tabs do not poll.
 */
import { useEffect, useState } from "./html.js";

const RETRY_MOST = 10;
const TIMEOUT_MS = 30000;
let token = "";
const sources = new Map();

/* --- the state of the connection, for the bar at the top */

/*
 * seen: the newest answer that was no error; since: the same before the aggregator became unreachable, or null;
 * denied: why it wants credentials, or "".
 */
export const connection = { since: null, denied: "", seen: null };
const watchers = new Set();

function note(change) {
	Object.assign(connection, change);
	for (const w of watchers) w({ ...connection });
}

export function useConnection() {
	const [state, set] = useState({ ...connection });
	useEffect(() => {
		watchers.add(set);
		return () => watchers.delete(set);
	}, []);
	return state;
}

export function setToken(text) {
	token = text.trim();
	note({ denied: "" });
	for (const s of sources.values()) s.now();
}

/* --- one request */

class ApiError extends Error {
	constructor(status, message) {
		super(message);
		this.status = status;
	}
}

function parse(text) {
	try {
		return JSON.parse(text);
	} catch {
		return null;
	}
}

/* {status, etag, body} of an answer of status 2xx or 304; else throws an ApiError, of status 0 where no answer came. */
async function request(path, options = {}) {
	const headers = { ...options.headers };
	if (token) headers.Authorization = "Bearer " + token;
	let response, text;
	try {
		response = await fetch(path, { ...options, headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
		text = await response.text();
	} catch {
		note({ since: connection.since ?? connection.seen ?? new Date() });
		throw new ApiError(0, "The aggregator does not answer.");
	}
	const { status } = response;
	const body = parse(text);
	if (status === 304 || (response.ok && body)) {
		note({ since: null, seen: new Date(), denied: "" });
		return { status, etag: response.headers.get("ETag"), body };
	}
	const e = body?.error;
	const message = (e?.field ? e.field + ": " : "") + (e?.message ?? `HTTP status ${status}, without a readable answer`);
	note({ since: null, denied: status === 401 ? message : "" });
	throw new ApiError(status, message);
}

export async function post(path, body) {
	const answer = await request(path, {
		method: "POST",
		headers: { "Content-Type": "application/json" },
		body: JSON.stringify(body),
	});
	return answer.body;
}

/* --- sources */

const withQuery = (path, name, value) => `${path}${path.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;

class Source {
	constructor(path, seconds) {
		Object.assign(this, { path, seconds, pages: [], data: null, error: null, changed: false, listeners: new Set(), failures: 0, busy: false });
	}

	/* Sets changed if the page at that place is another one than before. */
	async readPage(i) {
		const known = this.pages[i];
		const path = i ? withQuery(this.path, "continue", this.pages[i - 1].body.continue) : this.path;
		const { status, etag, body } = await request(path, known?.path === path && known.etag ? { headers: { "If-None-Match": known.etag } } : {});
		if (status === 304) return;
		this.pages[i] = { path, etag, body };
		this.changed = true;
	}

	/* All pages of a list as one; other objects have one. A failure keeps the pages before it for the next time. */
	async read() {
		let count = 0;
		do await this.readPage(count++);
		while (this.pages[count - 1].body.continue);
		if (!this.changed && count === this.pages.length) return;
		this.changed = false;
		this.pages.length = count;
		const last = this.pages[count - 1].body;
		this.data = count > 1 ? { ...last, items: this.pages.flatMap((p) => p.body.items) } : last;
	}

	async poll() {
		if (this.busy) return;
		this.busy = true;
		const before = this.data;
		const error = this.error;
		const used = token;
		try {
			await this.read();
			this.error = null;
			this.failures = 0;
		} catch (e) {
			this.error = e;
			this.failures++;
		}
		this.busy = false;
		if (this.data !== before || this.error !== error) this.tell();
		if (used !== token) this.now();
		else this.plan();
	}

	tell() {
		for (const l of this.listeners) l({ data: this.data, error: this.error });
	}

	plan() {
		clearTimeout(this.timer);
		if (!this.listeners.size || document.hidden || this.error?.status === 401) return;
		const wait = this.failures ? Math.min(2 ** (this.failures - 1), RETRY_MOST) : this.seconds;
		this.timer = setTimeout(() => this.poll(), wait * 1000);
	}

	now() {
		clearTimeout(this.timer);
		if (this.listeners.size && !document.hidden) this.poll();
	}
}

document.addEventListener("visibilitychange", () => {
	for (const s of sources.values()) s.now();
});

const nothing = { data: null, error: null };

/* {data, error} of a GET, again every so many seconds. error.status 0: no answer came. path null: nothing. */
export function useApi(path, seconds = 5) {
	const [state, set] = useState({ path: null, ...nothing });
	useEffect(() => {
		if (!path) return undefined;
		const source = sources.get(path) ?? new Source(path, seconds);
		const listen = (s) => set({ path, ...s });
		sources.set(path, source);
		source.listeners.add(listen);
		set({ path, data: source.data, error: source.error });
		source.now();
		return () => {
			source.listeners.delete(listen);
			if (source.listeners.size) return;
			clearTimeout(source.timer);
			sources.delete(path);
		};
	}, [path]);
	return state.path === path ? state : nothing;
}
