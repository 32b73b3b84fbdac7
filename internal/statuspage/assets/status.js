// Renews the page without loading it anew: what has changed is put into the
// document, and what has not stays the same elements, so that focus, scroll
// position, selection and what is folded open stay as they are.
"use strict";
(() => {
  const trouble = (text) => {
    const at = document.getElementById("trouble");
    if (at && at.textContent !== text) at.textContent = text;
    document.body.classList.toggle("stale", text !== "");
  };

  // Elements with an id are the same thing in both documents.
  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");

  const morphAttributes = (from, to) => {
    for (const { name } of [...from.attributes]) {
      // Whether it is open is the reader's choice.
      if (!to.hasAttribute(name) && !(from.nodeName === "DETAILS" && name === "open")) from.removeAttribute(name);
    }
    for (const { name, value } of to.attributes) {
      if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
  };

  const morph = (from, to) => {
    if (from.nodeType === Node.TEXT_NODE) {
      if (from.data !== to.data) from.data = to.data;
      return;
    }
    if (from.nodeType !== Node.ELEMENT_NODE || from.id === "trouble") return;
    morphAttributes(from, to);
    const known = new Map();
    for (const child of from.childNodes) if (child.id) known.set(child.id, child);
    const wanted = new Set([...to.children].map((child) => child.id).filter(Boolean));
    let at = from.firstChild;
    for (const next of [...to.childNodes]) {
      // What is gone makes room, so that what stays need not be moved.
      while (at && at.id && !alike(at, next) && !wanted.has(at.id)) {
        const gone = at;
        at = at.nextSibling;
        gone.remove();
      }
      const same = next.id ? known.get(next.id) : null;
      if (at && alike(at, next)) {
        morph(at, next);
        at = at.nextSibling;
      } else if (same && alike(same, next)) {
        from.insertBefore(same, at);
        morph(same, next);
      } else {
        from.insertBefore(document.importNode(next, true), at);
      }
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  };

  const put = (html) => {
    const next = new DOMParser().parseFromString(html, "text/html");
    const focused = document.activeElement?.id;
    document.title = next.title;
    const icon = next.querySelector("link[rel=icon]")?.getAttribute("href");
    const link = document.querySelector("link[rel=icon]");
    if (icon && link.getAttribute("href") !== icon) link.setAttribute("href", icon);
    morph(document.body, next.body);
    // An element that was moved has lost the focus on the way.
    if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus({ preventScroll: true });
  };

  let timer, asking;

  const renew = async () => {
    clearTimeout(timer);
    asking?.abort();
    const mine = (asking = new AbortController());
    const late = setTimeout(() => mine.abort("late"), 10000);
    try {
      const answer = await fetch(location.href.split("#")[0], { cache: "no-store", signal: mine.signal, headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(`the answer is ${answer.status}`);
      const html = await answer.text();
      if (asking !== mine) return;
      put(html);
      trouble("");
    } catch (error) {
      if (asking !== mine) return;
      trouble("No answer: what you see is old.");
    } finally {
      clearTimeout(late);
    }
    wait();
  };

  const wait = () => {
    clearTimeout(timer);
    const seconds = Number(document.body.dataset.refresh);
    if (!seconds) return;
    timer = setTimeout(() => {
      const selecting = !(getSelection()?.isCollapsed ?? true);
      if (document.hidden || selecting) wait();
      else renew();
    }, seconds * 1000);
  };

  document.addEventListener("click", (event) => {
    const toggle = event.target.closest?.("#toggle");
    if (!toggle || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    delete document.body.dataset.refresh;
    history.replaceState(null, "", toggle.href);
    renew();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && document.body.dataset.refresh) renew();
  });
  wait();
})();
