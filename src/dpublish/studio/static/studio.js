// Progress as it happens, and forms that are sent once.  Pages work without this file.
"use strict";

// While a form is on its way its buttons rest; the studio itself spends once in any case.
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form.once")) return;
  for (const button of event.target.querySelectorAll("button")) button.disabled = true;
});
// A page that comes back from the browser's memory may hold a form that was sent already.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) window.location.reload();
});

for (const work of document.querySelectorAll("[data-events]")) {
  const source = new EventSource(work.dataset.events);
  const bar = work.querySelector("progress");
  const label = work.querySelector("[data-label]");
  source.onmessage = (message) => {
    const told = JSON.parse(message.data);
    label.textContent = told.total
      ? `${told.label}: ${told.done.toLocaleString("en")} of ${told.total.toLocaleString("en")}`
      : told.label;
    if (told.total) {
      bar.max = told.total;
      bar.value = told.done;
    } else {
      bar.removeAttribute("value");
    }
    if (told.state !== "running") {
      source.close();
      window.location.reload();
    }
  };
}
