import type { Branding } from "../queries/clients.ts";
import { isHttpsOrigin } from "../redirect-uri.ts";
import { Html } from "./html.ts";

const DEFAULT_COLOR = "#1f4fd8";
const COLOR = /^#[0-9a-f]{6}$/i;

/** The tenant's colour; nothing that is no colour gets into the style sheet. */
function brandColor({ primaryColor }: Branding): string {
  return COLOR.test(primaryColor) ? primaryColor : DEFAULT_COLOR;
}

/** Black or white, whichever has the higher contrast on the colour (WCAG 2.2, relative luminance). */
export function inkOn(color: string): "#000000" | "#ffffff" {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 ? "#ffffff" : "#000000";
}

/** The tenant's logo, if it has an https address whose origin may stand in a policy. */
export function logoOf({ logoUrl }: Branding): { src: string; origin: string } | undefined {
  if (logoUrl === null || !URL.canParse(logoUrl)) return undefined;
  const { href, origin } = new URL(logoUrl);
  return isHttpsOrigin(origin) ? { src: href, origin } : undefined;
}

/** Light or dark by the reader's own setting; the tenant's colour is on the button and the edge only. */
export function styleSheet(branding: Branding): Html {
  const color = brandColor(branding);
  return new Html(`
:root { color-scheme: light dark; --brand: ${color}; --on-brand: ${inkOn(color)};
  --page: #f4f5f7; --card: #ffffff; --text: #1b1f27; --soft: #4a5261; --line: #767d8a; --bad: #a4161a; --bad-soft: #fdecec; }
@media (prefers-color-scheme: dark) { :root { --page: #14161b; --card: #1e2128; --text: #eef0f4; --soft: #b7bdc9;
  --line: #868e9c; --bad: #ffb3b3; --bad-soft: #3d2024; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; min-height: 100vh; display: flex; align-items: center; justify-content: center;
  background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 26rem; padding: 1.5rem; background: var(--card); border: 1px solid var(--line);
  border-top: 0.375rem solid var(--brand); border-radius: 0.5rem; }
header { display: flex; align-items: center; gap: 0.75rem; color: var(--soft); overflow-wrap: anywhere; }
header img { max-height: 2.5rem; max-width: 8rem; }
h1 { margin: 0.75rem 0; font-size: 1.375rem; line-height: 1.25; overflow-wrap: anywhere; }
p, li { overflow-wrap: anywhere; }
label { display: block; margin: 1rem 0 0.25rem; font-weight: 600; }
input { width: 100%; min-height: 2.75rem; padding: 0.5rem 0.75rem; font: inherit; color: inherit; background: transparent;
  border: 1px solid var(--line); border-radius: 0.375rem; }
button { width: 100%; min-height: 2.75rem; margin-top: 1rem; padding: 0.5rem 1rem; font: inherit; font-weight: 600;
  cursor: pointer; border: 1px solid var(--text); border-radius: 0.375rem; background: var(--brand); color: var(--on-brand); }
button.plain { background: transparent; color: var(--text); }
button.quiet { border-color: transparent; color: var(--soft); }
a { color: inherit; }
:focus-visible { outline: 3px solid var(--text); outline-offset: 2px; }
.problem { padding: 0.75rem; border: 1px solid var(--bad); border-radius: 0.375rem; background: var(--bad-soft); color: var(--bad); }
.soft { color: var(--soft); }
`);
}
