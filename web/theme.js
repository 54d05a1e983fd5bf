// SPDX-License-Identifier: Apache-2.0
// Light, dark, or what the system says. A plain script in the head, so that the page never flashes in the wrong one.
(function () {
  const names = ["auto", "light", "dark"];
  let now = "auto";
  try { now = localStorage.getItem("tokwatt-theme") || "auto"; } catch { /* storage may be closed to us */ }
  const apply = () => {
    if (!names.includes(now)) now = "auto";
    if (now === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = now;
    const button = document.getElementById("theme");
    if (button) button.textContent = `Theme: ${now}`;
    document.dispatchEvent(new Event("theme"));
  };
  apply();
  addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      now = names[(names.indexOf(now) + 1) % names.length];
      try { localStorage.setItem("tokwatt-theme", now); } catch { /* then it lasts for this visit */ }
      apply();
    });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
})();
