"use strict";
// Runs before anything is painted: the remembered theme, so that the page does not flash.
try {
  const chosen = localStorage.getItem("latenz-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // No storage (a browser may refuse it to local files): the system's preference holds.
}
document.documentElement.classList.add("scripted");
