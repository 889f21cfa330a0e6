import { describe, expect, test } from "bun:test";

import {
  contrast,
  hoveredOf,
  readableOn,
  shadesOf,
  visibleOn,
  textColorOn,
} from "../../../src/dashboard/app/shell/colors.ts";

describe("the colours of a tenant", () => {
  test("ten shades go from pale to dark, and the seventh is the colour itself", () => {
    const shades = shadesOf("#1f6feb");
    expect(shades).toHaveLength(10);
    expect(shades[6]).toBe("#1f6feb");
    const onBlack = shades.map((shade) => contrast(shade, "#000000"));
    expect(onBlack).toEqual(onBlack.toSorted((a, b) => b - a));
  });

  test.each(["#ffffff", "#ffff00", "#1f6feb", "#000000", "#112233", "#777777"])(
    "%s can be read on a light and on a dark page",
    (color) => {
      for (const background of ["#ffffff", "#242424"])
        expect(contrast(readableOn(color, background), background)).toBeGreaterThanOrEqual(4.5);
    },
  );

  test.each(["#ffffff", "#ffff00", "#e8590c", "#1f6feb", "#000000", "#112233", "#777777"])(
    "%s can be told from a light and from a dark page, and words can be read on it",
    (color) => {
      for (const background of ["#f8f9fa", "#242424"]) {
        const shown = visibleOn(color, background);
        expect(contrast(shown, background)).toBeGreaterThanOrEqual(3);
        for (const ground of [shown, hoveredOf(shown)])
          expect(contrast(ground, textColorOn(shown))).toBeGreaterThanOrEqual(4.5);
      }
    },
  );

  test("a readable colour stays unchanged", () => {
    expect(readableOn("#112233", "#ffffff")).toBe("#112233");
  });

  test("contrast is that of WCAG, in either order of the colours", () => {
    expect(contrast("#000000", "#ffffff")).toBeCloseTo(21);
    expect(contrast("#ffffff", "#777777")).toBeCloseTo(4.48, 2);
  });

  test("an invalid colour becomes the platform's blue", () => {
    expect(shadesOf("red;}")[6]).toBe("#1f6feb");
  });
});
