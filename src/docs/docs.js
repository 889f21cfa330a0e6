// Adds a search field, copy buttons and colours to the pages, and stores the chosen language of samples. The pages are
// readable without JavaScript.
for (const box of document.querySelectorAll(".code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(box.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2_000);
  });
  box.prepend(button);
}

const search = document.getElementById("search");
const field = document.createElement("input");
field.type = "search";
field.placeholder = "Search";
field.setAttribute("aria-label", "Search the documentation");
const results = document.createElement("ul");
results.hidden = true;
results.setAttribute("aria-label", "Results");
search.append(field, results);

let sections;
const load = () => (sections ??= fetch("/docs/search.json").then((answer) => answer.json()));

function matching(all, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const score = ({ title, guide, text: body }) => {
    const [head, rest] = [`${title} ${guide}`.toLowerCase(), body.toLowerCase()];
    if (words.length === 0 || !words.every((word) => head.includes(word) || rest.includes(word)))
      return 0;
    return 1 + words.filter((word) => head.includes(word)).length;
  };
  return all
    .map((one) => ({ ...one, score: score(one) }))
    .filter((one) => one.score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, 8);
}

function show(found) {
  results.replaceChildren(
    ...found.map(({ path, title, guide }) => {
      const link = document.createElement("a");
      link.href = path;
      link.textContent = title === guide ? title : `${guide}: ${title}`;
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
  if (found.length === 0) results.textContent = "Nothing found.";
  results.hidden = field.value.trim() === "";
}

field.addEventListener("focus", load);
field.addEventListener("input", async () => {
  const typed = field.value;
  const all = await load();
  if (typed === field.value) show(matching(all, typed));
});
search.addEventListener("keydown", (event) => {
  const links = [...results.querySelectorAll("a")];
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key === "Escape") {
    field.value = "";
    results.hidden = true;
    field.focus();
  } else if (event.key === "Enter" && event.target === field) links[0]?.click();
  else if (event.key in steps) {
    event.preventDefault();
    const next = links.indexOf(document.activeElement) + steps[event.key];
    (links[next] ?? field).focus();
  }
});
results.addEventListener("click", () => (results.hidden = true));
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea")) return;
  event.preventDefault();
  field.focus();
});
document.addEventListener("click", (event) => {
  if (!search.contains(event.target)) results.hidden = true;
});

const languages = document.querySelectorAll(".languages input");
for (const input of languages) {
  if (input.value === localStorage.getItem("language")) input.checked = true;
  input.addEventListener("change", () => localStorage.setItem("language", input.value));
}
document.querySelector(".contents [aria-current]")?.scrollIntoView({ block: "nearest" });
const contents = document.getElementById("contents");
contents.addEventListener("click", (event) => {
  if (event.target.closest("a") && contents.matches(":popover-open")) contents.hidePopover();
});

// Colours comments, texts and words of code. Highlights add no elements, and a block is read when it comes into view.
const TOKEN =
  /(?<comment>(?<=^|\s)#(?!!?\[).*|(?<=^|\s)\/\/.*|\/\*[^]*?\*\/)|(?<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|(?<word>\b(?:async|await|break|case|catch|class|const|continue|def|defer|elif|else|export|false|final|for|foreach|from|func|function|if|import|in|let|match|new|nil|None|null|package|public|return|static|switch|throw|true|True|False|try|type|use|var|void|while|with|\d+(?:\.\d+)?)\b)/gm;
if (CSS.highlights !== undefined) {
  const kinds = new Map(["comment", "text", "word"].map((kind) => [kind, new Highlight()]));
  for (const [kind, highlight] of kinds) CSS.highlights.set(kind, highlight);
  const color = (code) => {
    const [node] = code.childNodes;
    for (const { index, 0: found, groups } of node.data.matchAll(TOKEN))
      for (const [kind, highlight] of kinds) {
        if (groups[kind] === undefined) continue;
        const range = new StaticRange({
          startContainer: node,
          startOffset: index,
          endContainer: node,
          endOffset: index + found.length,
        });
        highlight.add(range);
      }
  };
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        color(target);
      }
    },
    { rootMargin: "500px" },
  );
  for (const code of document.querySelectorAll(".code code")) seen.observe(code);
}
