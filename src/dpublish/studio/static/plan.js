// The slider of epsilon: it fills in the field of numbers, which works without it.
"use strict";

const slider = document.getElementById("slider");
const field = document.getElementById("epsilon");

if (slider && field) {
  const steps = slider.dataset.steps.split(",");
  const size = (text) => {
    const [above, below] = text.split("/");
    return Math.log(Number(above) / Number(below || 1));
  };
  const follow = () => {
    const wanted = size(field.value);
    if (!Number.isFinite(wanted)) return;
    let nearest = 0;
    steps.forEach((step, index) => {
      if (Math.abs(size(step) - wanted) < Math.abs(size(steps[nearest]) - wanted)) nearest = index;
    });
    slider.value = nearest;
    slider.setAttribute("aria-valuetext", `ε ${field.value}`);
  };
  slider.addEventListener("input", () => {
    field.value = steps[slider.value];
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  field.addEventListener("input", () => {
    follow();
    for (const other of document.querySelectorAll('input[name="epsilon"]')) {
      if (other !== field) other.value = field.value;
    }
  });
  follow();
  slider.hidden = false;
}
