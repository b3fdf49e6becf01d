// Copies what an element says.
"use strict";
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const from = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(from.textContent);
    } catch { // it is not there over plain HTTP
      getSelection().selectAllChildren(from);
      if (!document.execCommand("copy")) return;
    }
    button.textContent = "Copied";
    button.setAttribute("aria-live", "polite");
  });
}
