// What a page 360 pixels wide is like without a mouse; what is wrong is written beside it.
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, view = frame.contentWindow, wrong = [];
  const start = (element) => element.outerHTML.slice(0, 80);
  view.focus();
  page.querySelectorAll("details").forEach((element) => (element.open = true));
  if (page.documentElement.scrollWidth > view.innerWidth) wrong.push("wider than the screen");
  const stops = [...page.querySelectorAll("a[href], summary, [tabindex]")];
  for (const element of stops) {
    element.focus();
    const style = view.getComputedStyle(element);
    if (page.activeElement !== element || element.tabIndex !== 0) wrong.push("not in the order: " + start(element));
    if (!element.matches(":focus-visible") || style.outlineStyle !== "solid" || parseFloat(style.outlineWidth) < 2)
      wrong.push("not seen where the focus is: " + start(element));
  }
  for (const element of page.querySelectorAll("*")) {
    const scrolls = /auto|scroll/.test(view.getComputedStyle(element).overflowX) && element.scrollWidth > element.clientWidth;
    if (scrolls && element.tabIndex < 0) wrong.push("scrolls by mouse alone: " + start(element));
  }
  for (const link of page.querySelectorAll("a[href^='#']"))
    if (!page.getElementById(link.hash.slice(1))) wrong.push("leads nowhere: " + start(link));
  for (const heading of page.querySelectorAll("th"))
    if (!heading.textContent.trim()) wrong.push("a column without a heading");
  document.querySelector("pre").textContent = JSON.stringify({ stops: stops.length, wrong });
};
