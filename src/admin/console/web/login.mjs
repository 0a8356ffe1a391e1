/* Exchanges the code behind the # of a login link for a session cookie. The browser sends no server what is behind the #. */
const code = location.hash.slice(1);
// Not kept in the address, which may be copied on.
if (code) history.replaceState(null, "", location.pathname);

const tell = text => { document.getElementById("trouble").textContent = text; };

async function exchange() {
  const answer = await fetch("login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) });
  if (answer.ok) location.replace("partitions");
  else tell((await answer.json()).error.message);
}

if (code) exchange().catch(error => tell(`The server does not answer (${error.message}).`));
