const HEX_COLOR = /^#[0-9a-f]{6}$/i;

/**
 * Returns a tenant's brand colour, or `fallback` if the value is not a hex colour. The database column accepts any text,
 * which could add declarations to a style attribute.
 */
export function hexColor(color: string, fallback: string): string {
  return HEX_COLOR.test(color) ? color : fallback;
}

/** Returns red, green and blue of a hex colour, from 0 to 255. */
export function channelsOf(color: string): readonly [red: number, green: number, blue: number] {
  const channel = (at: number) => Number.parseInt(color.slice(at, at + 2), 16);
  return [channel(1), channel(3), channel(5)];
}

const linear = (channel: number) =>
  channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;

/**
 * Returns black or white as text colour, whichever has the higher contrast on the given colour (WCAG 2.2, relative
 * luminance).
 */
export function inkOn(color: string): "#000000" | "#ffffff" {
  const [red, green, blue] = channelsOf(color);
  const luminance =
    0.2126 * linear(red / 255) + 0.7152 * linear(green / 255) + 0.0722 * linear(blue / 255);
  return 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 ? "#ffffff" : "#000000";
}
