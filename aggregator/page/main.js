/* The frame around views: navigation, the state of the connection, the token. */
import { setToken, useConnection } from "./api.js";
import * as format from "./format.js";
import { Component, html, render, useEffect, useRef, useState } from "./html.js";
import { link, pick, useRoute } from "./route.js";

const RETRY_MS = 2000;

/* By the first part of the hash. A view is loaded when it is first shown. */
const VIEWS = {
	nodes: { title: "Nodes", load: () => import("./views/nodes.js").then((m) => m.Nodes) },
	risk: { title: "Risk", load: () => import("./views/risk.js").then((m) => m.Risk) },
	limits: { title: "Limits", load: () => import("./views/limits.js").then((m) => m.Limits) },
	quotas: { title: "Quotas", load: () => import("./views/quotas.js").then((m) => m.Quotas) },
	drain: { title: "Drain", load: () => import("./views/drain.js").then((m) => m.Drain) },
	slack: { title: "Slack", load: () => import("./views/slack.js").then((m) => m.Slack) },
	fit: { title: "Fit", load: () => import("./views/fit.js").then((m) => m.Fit) },
	node: { load: () => import("./views/node.js").then((m) => m.Node) },
	pod: { load: () => import("./views/pod.js").then((m) => m.Pod) },
};

function Navigation({ view }) {
	return html`<nav aria-label="Views">
		<ul>
			${Object.entries(VIEWS)
				.filter(([, v]) => v.title)
				.map(([id, v]) => html`<li key=${id}><a href=${link([id])} aria-current=${id === view ? "page" : undefined}>${v.title}</a></li>`)}
		</ul>
	</nav>`;
}

/* Shown where the aggregator wants credentials. */
function Token() {
	const { denied } = useConnection();
	const [text, setText] = useState("");
	const submit = (e) => {
		e.preventDefault();
		setToken(text);
		setText("");
	};
	if (!denied) return null;
	return html`<form class="token" onSubmit=${submit}>
		<p role="alert"><b>The aggregator wants credentials:</b> ${denied}</p>
		<label for="token">Bearer token. It stays in the memory of this tab and is gone when the tab is closed or reloaded.</label>
		<p>
			<input id="token" type="password" autocomplete="off" value=${text} onInput=${(e) => setText(e.target.value)} />
			<button type="submit" disabled=${!text.trim()}>Use token</button>
		</p>
	</form>`;
}

/* Scripts are not told why a request fails; only a load of the page shows the browser's objection to a certificate. */
function Unreachable() {
	const { since } = useConnection();
	const hint = location.protocol === "https:" ? " If its certificate has changed, reload the page." : "";
	return since && html`<p class="problem" role="alert">Aggregator unreachable since ${format.time(since)}, retrying. What is shown is as of then.${hint}</p>`;
}

/* When the aggregator answered last. */
function Seen() {
	const { seen } = useConnection();
	return seen && html`<p class="seen">as of ${format.time(seen)}</p>`;
}

/* The view's component, once it is loaded; a failure, as while the aggregator restarts, is retried. */
function useView(id) {
	const [loaded, set] = useState({});
	useEffect(() => {
		let current = true;
		let timer;
		const load = () =>
			pick(VIEWS, id)
				?.load()
				.then(
					(view) => current && set({ id, view }),
					() => {
						if (!current) return;
						set({ id, failed: true });
						timer = setTimeout(load, RETRY_MS);
					},
				);
		load();
		return () => {
			current = false;
			clearTimeout(timer);
		};
	}, [id]);
	return loaded.id === id ? loaded : {};
}

/* Prints what a view throws, in its place. */
class Boundary extends Component {
	componentDidCatch(error) {
		console.error(error);
		this.setState({ error });
	}

	render({ children }, { error }) {
		return error ? html`<p class="problem" role="alert">The view failed: ${String(error)}</p>` : children;
	}
}

function App() {
	const route = useRoute();
	const main = useRef();
	const { view: View, failed } = useView(route.view);
	const key = [route.view, ...route.parts].join("/");
	const known = pick(VIEWS, route.view);
	const title = known?.title ?? route.parts.at(-1) ?? "";
	useEffect(() => {
		document.title = title ? `${title} · evenkeel` : "evenkeel";
	}, [title]);
	const skip = (e) => {
		e.preventDefault();
		main.current.focus();
	};
	return html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
		<header>
			<a class="brand" href=${link(["nodes"])}><img src="/page/icon.svg" alt="" width="22" height="22" />evenkeel</a>
			<${Navigation} view=${route.view} />
			<${Seen} />
		</header>
		<main ref=${main} tabindex="-1">
			<${Unreachable} />
			<${Token} />
			${!known && html`<h1>Not found</h1><p>No view is called "${route.view}".</p>`}
			${failed && html`<p class="problem" role="alert">The view could not be loaded, retrying. If this stays, reload the page.</p>`}
			${View && html`<${Boundary} key=${key}><${View} parts=${route.parts} params=${route.params} /><//>`}
		</main>`;
}

render(html`<${App} />`, document.getElementById("app"));
