// Keeps the pages live: questions come and go, entries change, answers are sent once and by their own id.
"use strict";
(() => {
  const GUARD = 800; // ms for which the buttons of a question that just appeared do nothing
  const asks = document.getElementById("asks");
  const entries = document.getElementById("entries");
  const connection = document.getElementById("connection");
  const say = (text) => { if (connection.textContent !== text) connection.textContent = text; };
  const parsed = (html) => new DOMParser().parseFromString(html, "text/html").body;

  const guard = (card) => {
    const buttons = [...card.querySelectorAll("form button")];
    buttons.forEach((b) => { b.disabled = true; });
    setTimeout(() => { if (!card.dataset.sent && !card.classList.contains("over")) buttons.forEach((b) => { b.disabled = false; }); }, GUARD);
  };

  const over = (card, text) => { // it stays where it is: what stands below must not move under a finger
    if (card.classList.contains("over")) return;
    card.classList.add("over");
    card.querySelectorAll("form button, form textarea").forEach((n) => { n.disabled = true; });
    const said = card.querySelector(".said");
    if (said && !said.textContent) said.textContent = text;
  };

  const count = () => {
    const open = asks.querySelectorAll(".ask:not(.over)").length;
    const box = document.getElementById("count");
    const text = open ? `${open} open question${open > 1 ? "s" : ""}` : "";
    if (box.textContent !== text) box.textContent = text;
    document.title = document.title.replace(/^\(\d+\) /, "");
    if (open) document.title = `(${open}) ${document.title}`;
  };

  let looking = false, again = false;
  const look = async () => {
    if (looking) { again = true; return; }
    looking = true;
    try {
      const response = await fetch(asks.dataset.source, { headers: { "X-Fragment": "1" } });
      if (response.status === 401) { location.assign("/ui/login"); return; }
      if (response.ok) merge(parsed(await response.text()));
    } catch { say("the server is gone: reconnecting"); } finally {
      looking = false;
      if (again) { again = false; look(); }
    }
  };

  const merge = (fresh) => { // a question never changes: a card that is there stays as it is, with what is typed in it
    const now = new Map([...fresh.querySelectorAll("[data-ask]")].map((card) => [card.dataset.ask, card]));
    for (const card of asks.querySelectorAll("[data-ask]")) {
      if (now.has(card.dataset.ask)) now.delete(card.dataset.ask);
      else if (!card.dataset.sent) over(card, "settled elsewhere, or withdrawn");
    }
    for (const card of now.values()) { asks.append(card); guard(card); }
    count();
  };

  const send = async (form, button) => {
    const card = form.closest("[data-ask]");
    if (card.dataset.sent || card.classList.contains("over")) return;
    card.dataset.sent = "1";
    const body = new URLSearchParams(new FormData(form));
    body.set("answer", button.value);
    card.querySelectorAll("form button, form textarea").forEach((n) => { n.disabled = true; });
    const said = form.querySelector(".said");
    for (;;) { // the same answer with the same key is one answer, however often it is sent
      said.textContent = "sending…";
      try {
        const response = await fetch(form.action, { method: "POST", body, headers: { "X-Fragment": "1" } });
        if (response.status === 401) { location.assign("/ui/login"); return; }
        if (response.status !== 503) {
          const text = await response.text();
          over(card, "");
          said.textContent = text;
          count();
          return;
        }
      } catch { /* nobody there: again below */ }
      said.textContent = "the server is gone: the answer is sent when it is back";
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.closest("[data-ask]")) return;
    event.preventDefault();
    if (event.submitter && event.submitter.value && !event.submitter.disabled) send(form, event.submitter);
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    event.preventDefault();
    if (navigator.clipboard) {
      navigator.clipboard.writeText(button.dataset.copy).then(() => {
        button.textContent = "copied";
        setTimeout(() => { button.textContent = "copy"; }, 1200);
      }, () => {});
    }
  });

  const put = (at, html) => {
    const fresh = parsed(html).firstElementChild;
    const old = entries.querySelector(`[data-at="${at}"]`);
    if (old) {
      const open = [...old.querySelectorAll("details")].map((d) => d.open);
      old.replaceWith(fresh);
      [...fresh.querySelectorAll("details")].forEach((d, i) => { if (open[i]) d.open = true; });
      return;
    }
    const shown = [...entries.children];
    if (shown.length && at < Number(shown[0].dataset.at)) return; // older than what the page shows
    const next = shown.find((n) => Number(n.dataset.at) > at);
    if (next) next.before(fresh); else entries.append(fresh);
  };

  const follow = (url, handlers) => {
    let after = entries ? entries.dataset.after : null, source = null;
    const begin = () => {
      source = new EventSource(after === null ? url : `${url}?after=${after}`);
      source.onopen = () => { say(""); look(); };
      source.onerror = () => {
        say("the server is gone: reconnecting");
        if (source.readyState === EventSource.CLOSED) setTimeout(begin, 1000);
      };
      for (const [name, handler] of Object.entries(handlers)) {
        source.addEventListener(name, (event) => {
          if (event.lastEventId) after = event.lastEventId;
          handler(JSON.parse(event.data));
        });
      }
    };
    begin();
  };

  if (!asks) return;
  asks.querySelectorAll("[data-ask]").forEach(guard);
  count();
  if (entries) {
    follow(entries.dataset.source, {
      entry: (data) => put(data.at, data.html),
      head: (data) => { document.getElementById("head").replaceChildren(...parsed(data.html).childNodes); },
      live: (data) => { document.getElementById("live").replaceChildren(...parsed(data.html).childNodes); },
      asks: look,
    });
  } else follow("/ui/events", { asks: look });
})();
