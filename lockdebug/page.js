"use strict";
// Fetches the page anew every few seconds and patches the old one where it
// differs, so that focus, scroll, selection and what is unfolded stay. Without
// it the page works the same, by links, its form and a meta refresh.
(() => {
	const live = ["links", "totals", "chains", "keys"];
	const filter = document.getElementById("filter");
	const trouble = document.getElementById("trouble");
	const tooLong = 15000;
	let seconds = Number(document.body.dataset.refresh);
	let timer = 0, running = null;

	document.documentElement.classList.add("scripted");

	function patch(old, want) {
		if (old.nodeType !== want.nodeType || old.nodeName !== want.nodeName || old.id !== want.id) {
			old.replaceWith(want);
			return;
		}
		if (old.nodeType !== Node.ELEMENT_NODE) {
			if (old.data !== want.data) old.data = want.data;
			return;
		}
		if (old.isEqualNode(want)) return;
		for (const { name } of [...old.attributes]) {
			if (name !== "open" && !want.hasAttribute(name)) old.removeAttribute(name);
		}
		for (const { name, value } of [...want.attributes]) {
			if (old.getAttribute(name) !== value) old.setAttribute(name, value);
		}
		const named = new Map();
		for (const child of old.children) if (child.id) named.set(child.id, child);
		let at = old.firstChild;
		for (const child of [...want.childNodes]) {
			// What has a name is found by it wherever it was; the rest by its place.
			let have = null;
			if (child.id) have = named.get(child.id) ?? null;
			else if (at && !at.id && at.nodeName === child.nodeName) have = at;
			if (!have) {
				old.insertBefore(child, at);
				continue;
			}
			if (have === at) at = at.nextSibling;
			else old.insertBefore(have, at);
			patch(have, child);
		}
		while (at) {
			const next = at.nextSibling;
			at.remove();
			at = next;
		}
	}

	async function refresh() {
		clearTimeout(timer);
		running?.abort();
		const mine = running = new AbortController();
		const limit = setTimeout(() => mine.abort(), tooLong);
		let problem = "";
		try {
			const answer = await fetch(location.pathname + location.search, { signal: mine.signal, redirect: "error", cache: "no-store" });
			if (!answer.ok) throw new Error("the server answers " + answer.status);
			const text = await answer.text();
			if (running !== mine) return; // the filter has changed meanwhile
			const page = new DOMParser().parseFromString(text, "text/html");
			if (!live.every((id) => page.getElementById(id))) throw new Error("the server answers with another page");
			const focused = document.activeElement;
			for (const id of live) patch(document.getElementById(id), page.getElementById(id));
			if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
			document.title = page.title;
		} catch (e) {
			problem = mine.signal.aborted ? "the server takes too long" : e.message;
		} finally {
			clearTimeout(limit);
		}
		if (running !== mine) return;
		running = null;
		say(problem && "This is not up to date: " + problem + ".");
		plan();
	}

	function say(text) {
		if (trouble.textContent !== text) trouble.textContent = text;
	}

	function plan() {
		clearTimeout(timer);
		if (seconds > 0 && !document.hidden) timer = setTimeout(refresh, seconds * 1000);
	}

	// go makes search the page's address, as a visit without script would.
	function go(search) {
		history.replaceState(null, "", location.pathname + search + location.hash);
		seconds = Number(new URLSearchParams(search).get("refresh") ?? document.body.dataset.usual);
		refresh();
	}

	function goFiltered() {
		const query = new URLSearchParams(location.search);
		if (filter.value) query.set("key", filter.value);
		else query.delete("key");
		go("?" + query);
	}

	let typing = 0;
	filter.addEventListener("input", () => {
		clearTimeout(typing);
		typing = setTimeout(goFiltered, 150);
	});
	// On the document: a hidden field may have the name of any property of the
	// form, and hides it. The page has no other form.
	document.addEventListener("submit", (e) => {
		e.preventDefault();
		clearTimeout(typing);
		goFiltered();
	});
	document.addEventListener("click", (e) => {
		if (e.defaultPrevented || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
		const link = e.target.closest?.("#toggle, #again");
		if (!link) return;
		e.preventDefault();
		go(new URL(link.href).search);
	});
	document.addEventListener("visibilitychange", () => {
		if (document.hidden) clearTimeout(timer);
		else if (seconds > 0) refresh();
	});
	plan();
})();
