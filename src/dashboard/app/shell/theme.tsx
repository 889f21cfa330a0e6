import {
  createTheme,
  type CSSVariablesResolver,
  MantineProvider,
  type MantineTheme,
  virtualColor,
} from "@mantine/core";
import { type ReactNode, useMemo } from "react";

import { useBrand } from "../session/session.tsx";
import { BrandName } from "../ui/brand-name.ts";
import {
  contrast,
  hoveredOf,
  readableOn,
  shadesOf,
  tintOn,
  visibleOn,
  textColorOn,
} from "./colors.ts";

const PLATFORM_COLOR = "#1f6feb";
/**
 * The darkest background of text in the light scheme, and the lightest one in the dark scheme. Contrast is computed
 * against these colours, so that it suffices on all backgrounds.
 */
const LIGHT_BACKGROUND = "#f8f9fa";
const DARK_BACKGROUND = "#242424";

/** Returns the nonce of the document's content security policy, which style elements created by Mantine must carry. */
export function styleNonce(): string {
  return document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";
}

interface BrandThemeProps {
  readonly children: ReactNode;
  /** Forced colour scheme. If absent, the user's choice or the browser's setting applies. */
  readonly scheme?: "light" | "dark" | undefined;
}

/** Provides the theme of the signed-in user's company to the Mantine components. */
export function BrandTheme({ children, scheme }: BrandThemeProps) {
  const brand = useBrand();
  const color = brand?.color ?? PLATFORM_COLOR;
  const theme = useMemo(
    () =>
      createTheme({
        primaryColor: "brand",
        primaryShade: 6,
        colors: {
          // Uses a shade of the tenant's colour that stands out from the page, because otherwise a selection
          // might be invisible.
          brand: virtualColor({ name: "brand", light: "brandOnLight", dark: "brandOnDark" }),
          brandOnLight: shadesOf(visibleOn(color, LIGHT_BACKGROUND)),
          brandOnDark: shadesOf(visibleOn(color, DARK_BACKGROUND)),
        },
        autoContrast: true,
        components: COMPONENT_DEFAULTS,
        respectReducedMotion: true,
        defaultRadius: "md",
        cursorType: "pointer",
        fontFamily:
          "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
        fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
        headings: { fontWeight: "650" },
      }),
    [color],
  );
  const variables = useMemo(() => readableVariables(color), [color]);
  return (
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      {...(scheme && { forceColorScheme: scheme })}
      cssVariablesResolver={variables}
      getStyleNonce={styleNonce}
    >
      <BrandName value={brand?.name}>{children}</BrandName>
    </MantineProvider>
  );
}

/** Red with enough contrast for white text on it. */
const STRONG_RED = {
  "--mantine-color-red-filled": "#c92a2a",
  "--mantine-color-red-filled-hover": "#b02525",
} as const;

/**
 * Renders dropdowns next to their control. By default Mantine renders them at the end of the body, outside of
 * all landmarks. A list opens by a click, by typing or by an arrow key, but not when its field gets the focus: a dialog
 * focuses its first field, and an open list would cover the rest of the dialog.
 */
const INLINE_DROPDOWN = {
  defaultProps: {
    comboboxProps: { withinPortal: false, keepMounted: false },
    // Lets the list itself scroll, so that arrow keys work. Mantine's scroll area would not be reachable by keyboard.
    withScrollArea: false,
    openOnFocus: false,
    styles: { options: { maxHeight: 220, overflowY: "auto" } },
  },
} as const;
const COMPONENT_DEFAULTS = {
  // Disables Mantine's placeholder for the initial focus, because screen readers would announce it as a menu item.
  Menu: { defaultProps: { withinPortal: false, withInitialFocusPlaceholder: false } },
  Select: INLINE_DROPDOWN,
  MultiSelect: INLINE_DROPDOWN,
  Autocomplete: INLINE_DROPDOWN,
  // Renders tooltips into `main`, so that containers with hidden overflow do not clip them.
  Tooltip: { defaultProps: { portalProps: { target: "main" } } },
};

/**
 * Colours that show states as text on a pale shade of the same colour. Text in these colours gets a readable
 * shade, because Mantine's yellow has too little contrast.
 */
const STATE_COLORS = ["red", "yellow", "teal", "blue", "gray"] as const;

function stateTextColors(colors: MantineTheme["colors"]): Record<string, string> {
  const entries = STATE_COLORS.map((name) => {
    const [, pale, , , , , , , , strong] = colors[name];
    return [`--mantine-color-${name}-light-color`, readableOn(strong, pale)];
  });
  return Object.fromEntries(entries);
}

/**
 * Weak tints for alerts and states in the dark scheme. Mantine's are strong colours, which draw more attention than the
 * content of the page.
 */
function darkStateColors(colors: MantineTheme["colors"]): Record<string, string> {
  const entries = STATE_COLORS.flatMap((name) => {
    const [, , , pale, , middle] = colors[name];
    const tint = tintOn(middle, DARK_BACKGROUND);
    return [
      [`--mantine-color-${name}-light`, tint],
      [`--mantine-color-${name}-light-color`, readableOn(pale, tint)],
    ];
  });
  return Object.fromEntries(entries);
}

/** Returns the tint of a state in the dark scheme below which text has the least contrast. */
function lightestTint(colors: MantineTheme["colors"]): string {
  const tints = STATE_COLORS.map((name) => tintOn(colors[name][5], DARK_BACKGROUND));
  return tints.reduce((one, other) =>
    contrast(one, "#000000") > contrast(other, "#000000") ? one : other,
  );
}

/** CSS variables for text on the tenant's colour, and for the tenant's colour of hovered controls. */
const filledWith = (shown: string) => ({
  "--mantine-color-brand-contrast": textColorOn(shown),
  "--mantine-color-brand-filled-hover": hoveredOf(shown),
  "--mantine-primary-color-contrast": textColorOn(shown),
});

/** CSS variables that raise the contrast of Mantine's dimmed grey and of the tenant's colour to WCAG AA. */
function readableVariables(color: string): CSSVariablesResolver {
  const onLight = readableOn(color, LIGHT_BACKGROUND);
  return ({ colors }) => {
    const onDark = readableOn(color, lightestTint(colors));
    return {
      variables: {},
      light: {
        ...STRONG_RED,
        ...filledWith(visibleOn(color, LIGHT_BACKGROUND)),
        ...stateTextColors(colors),
        "--mantine-color-dimmed": "#5c636a",
        "--mantine-color-placeholder": "#6a7178",
        "--mantine-color-error": "#c92a2a",
        "--mantine-color-anchor": onLight,
        "--mantine-color-brand-text": onLight,
        // Computed against the background of a hovered menu entry, which is the darkest background below this text.
        "--mantine-color-brand-light-color": readableOn(color, shadesOf(color)[2]),
      },
      dark: {
        ...STRONG_RED,
        ...filledWith(visibleOn(color, DARK_BACKGROUND)),
        ...darkStateColors(colors),
        "--mantine-color-dimmed": "#a6a7ab",
        "--mantine-color-placeholder": "#909296",
        "--mantine-color-error": "#ff8787",
        "--mantine-color-anchor": onDark,
        "--mantine-color-brand-text": onDark,
      },
    };
  };
}
