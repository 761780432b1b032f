/*
 * What is shown is in the hash of the URL, so a link has it: "#/node/NAME?metric=p95". Parts and
 * values are escaped.
 */
import { useEffect, useState } from "./html.js";

function read() {
	const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
	const decode = (part) => {
		try {
			return decodeURIComponent(part);
		} catch {
			return part;
		}
	};
	const parts = path.split("/").map(decode);
	return { view: parts[0] || "nodes", parts: parts.slice(1), params: new URLSearchParams(query) };
}

/* href of a view: link(["node", "a b"], {metric: "p95"}); parameters without a value are left out. */
export function link(parts, params = {}) {
	const query = new URLSearchParams(Object.entries(params).filter(([, v]) => v)).toString();
	return "#/" + parts.map(encodeURIComponent).join("/") + (query ? "?" + query : "");
}

/* The table's own member of that name, for names from URLs. */
export const pick = (table, name, other) => (Object.hasOwn(table, name) ? table[name] : other);

/* {view, parts, params} of the URL, as it changes. */
export function useRoute() {
	const [route, set] = useState(read);
	useEffect(() => {
		const changed = () => set(read());
		addEventListener("hashchange", changed);
		return () => removeEventListener("hashchange", changed);
	}, []);
	return route;
}

/* Sets parameters of the view that is shown, without a new entry in the history. */
export function setParams(changes) {
	const { view, parts, params } = read();
	const all = { ...Object.fromEntries(params), ...changes };
	history.replaceState(null, "", link([view, ...parts], all));
	dispatchEvent(new HashChangeEvent("hashchange"));
}

export const open = (...parts) => {
	location.hash = link(parts);
};
