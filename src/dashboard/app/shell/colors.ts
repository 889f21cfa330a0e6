type Rgb = readonly [number, number, number];

/**
 * Derives ten shades of a colour such as `#1f6feb`, from nearly white to nearly black. The seventh shade is the
 * colour itself.
 */
export function shadesOf(hex: string) {
  const color = parse(hex);
  const light = (part: number) => mix(color, [255, 255, 255], part);
  const dark = (part: number) => mix(color, [0, 0, 0], part);
  return [
    light(0.93),
    light(0.84),
    light(0.7),
    light(0.54),
    light(0.36),
    light(0.18),
    light(0),
    dark(0.12),
    dark(0.26),
    dark(0.42),
  ] as const;
}

/** Darkens or lightens the colour until text in this colour is readable on the background (WCAG 2.2, 1.4.3). */
export const readableOn = (hex: string, background: string): string =>
  withContrast(hex, background, READABLE_CONTRAST);

/**
 * Darkens or lightens the colour until it is distinguishable from the background, as a selection indicator
 * must be (WCAG 2.2, 1.4.11).
 */
export const visibleOn = (hex: string, background: string): string =>
  withContrast(hex, background, VISIBLE_CONTRAST);

function withContrast(hex: string, background: string, atLeast: number): string {
  const target: Rgb = luminance(parse(background)) > 0.5 ? [0, 0, 0] : [255, 255, 255];
  for (let part = 0; part < 1; part += 0.01) {
    const candidate = mix(parse(hex), target, part);
    if (contrast(candidate, background) >= atLeast) return candidate;
  }
  return mix(parse(hex), target, 1);
}

/**
 * Minimum contrast ratios. WCAG requires 4.5 for text and 3 for other content. These values are slightly higher,
 * because colours are rounded.
 */
const READABLE_CONTRAST = 4.6;
const VISIBLE_CONTRAST = 3.05;

const WHITE = "#ffffff";
const BLACK = "#000000";

/** Returns a weak tint of the colour on the background. */
export const tintOn = (hex: string, background: string): string =>
  mix(parse(background), parse(hex), 0.16);

/** Returns black or white, whichever has more contrast to the colour. */
export const textColorOn = (hex: string): string =>
  contrast(hex, WHITE) >= contrast(hex, BLACK) ? WHITE : BLACK;

/** Returns the colour of a hovered control: slightly darker under white text, slightly lighter under black text. */
export const hoveredOf = (hex: string): string =>
  mix(parse(hex), parse(textColorOn(hex) === WHITE ? BLACK : WHITE), 0.12);

export function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [one, other]
    .map((hex) => luminance(parse(hex)))
    .toSorted((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

/**
 * Parses a colour of six hex digits. Any other value becomes the platform's blue, so that a malformed theme
 * does not break a page.
 */
function parse(hex: string): Rgb {
  const value = /^#[0-9a-f]{6}$/i.test(hex) ? Number.parseInt(hex.slice(1), 16) : 0x1f6feb;
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function mix(from: Rgb, to: Rgb, part: number): string {
  const channel = (i: 0 | 1 | 2) =>
    Math.round(from[i] + (to[i] - from[i]) * part)
      .toString(16)
      .padStart(2, "0");
  return `#${channel(0)}${channel(1)}${channel(2)}`;
}

/** Returns the relative luminance of a colour as WCAG 2.2 defines it. */
function luminance(color: Rgb): number {
  return 0.2126 * linear(color[0]) + 0.7152 * linear(color[1]) + 0.0722 * linear(color[2]);
}

function linear(channel: number): number {
  const share = channel / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}
