/* Exchanges the code behind the # of a login link for a session cookie. The browser sends no server what is behind the #. */
const show = text => { document.getElementById("trouble").textContent = text; };

async function exchange() {
  const code = location.hash.slice(1);
  if (!code) return;
  // Not kept in the address, which may be copied on.
  history.replaceState(null, "", location.pathname);
  try {
    const answer = await fetch("login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) });
    if (answer.ok) location.replace("partitions");
    else show((await answer.json()).error.message);
  } catch (error) {
    show(`The server does not answer (${error.message}).`);
  }
}

// A link that is opened where this page is shown already does not load it again.
addEventListener("hashchange", exchange);
exchange();
