// The form of a column shows the fields of the chosen kind; fields of others are not sent.
"use strict";

const kind = document.getElementById("kind");
const parts = [...document.querySelectorAll("[data-kinds]")];

function showKind() {
  for (const part of parts) {
    const fits = !kind.value || part.dataset.kinds.split(" ").includes(kind.value);
    part.hidden = !fits;
  }
  for (const field of document.querySelectorAll("#column-form [name]")) {
    field.disabled = field.closest("[data-kinds][hidden]") !== null;
  }
}

kind.addEventListener("change", showKind);
showKind();
