import {
  createTheme,
  type CSSVariablesResolver,
  MantineProvider,
  type MantineTheme,
  virtualColor,
} from "@mantine/core";
import { type ReactNode, useMemo } from "react";

import { useSessionState } from "../session/session.tsx";
import { hoveredOf, readableOn, shadesOf, visibleOn, wordsOn } from "./colors.ts";

const PLATFORM_COLOR = "#1f6feb";
/** Text stands on nothing darker among the light backgrounds, and on nothing lighter among the dark ones. */
const LIGHT_BACKGROUND = "#f8f9fa";
const DARK_BACKGROUND = "#242424";

/** The nonce of the document's policy: style elements that the components write carry it. */
export function styleNonce(): string {
  return document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";
}

interface BrandThemeProps {
  readonly children: ReactNode;
  /** Absent: as the browser has it, or as the user chose. */
  readonly scheme?: "light" | "dark" | undefined;
}

/** Gives the components the colours of whoever is signed in. */
export function BrandTheme({ children, scheme }: BrandThemeProps) {
  const { session } = useSessionState();
  const color = session?.theme.primary_color ?? PLATFORM_COLOR;
  const theme = useMemo(
    () =>
      createTheme({
        primaryColor: "brand",
        primaryShade: 6,
        colors: {
          // A tenant's colour may be as dark, or as pale, as the page: what is chosen would not be seen.
          brand: virtualColor({ name: "brand", light: "brandOnLight", dark: "brandOnDark" }),
          brandOnLight: shadesOf(visibleOn(color, LIGHT_BACKGROUND)),
          brandOnDark: shadesOf(visibleOn(color, DARK_BACKGROUND)),
        },
        autoContrast: true,
        components: IN_PLACE,
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
      {children}
    </MantineProvider>
  );
}

/** A red on which white words can be read. */
const STRONG_RED = {
  "--mantine-color-red-filled": "#c92a2a",
  "--mantine-color-red-filled-hover": "#b02525",
} as const;

/** What unfolds stands where it was asked for, and not at the end of the page outside of all landmarks. */
const LIST_HERE = {
  defaultProps: {
    comboboxProps: { withinPortal: false, keepMounted: false },
    // The list itself scrolls, by the arrow keys; an area around it could not be reached by any key.
    withScrollArea: false,
    styles: { options: { maxHeight: 220, overflowY: "auto" } },
  },
} as const;
const IN_PLACE = {
  // Its place for the first focus is no entry of a menu.
  Menu: { defaultProps: { withinPortal: false, withInitialFocusPlaceholder: false } },
  Select: LIST_HERE,
  MultiSelect: LIST_HERE,
  Autocomplete: LIST_HERE,
  // It may not be cut off by what it stands in.
  Tooltip: { defaultProps: { portalProps: { target: "main" } } },
};

/** Colours of states, which stand as words on their own pale colour; the library's yellow is too faint there. */
const STATE_COLORS = ["red", "yellow", "teal", "blue", "gray"] as const;

function readableWords(colors: MantineTheme["colors"]): Record<string, string> {
  const entries = STATE_COLORS.map((name) => {
    const [, pale, , , , , , , , strong] = colors[name];
    return [`--mantine-color-${name}-light-color`, readableOn(strong, pale)];
  });
  return Object.fromEntries(entries);
}

/** What stands on a tenant's colour, and what becomes of it under the pointer. */
const filledWith = (shown: string) => ({
  "--mantine-color-brand-contrast": wordsOn(shown),
  "--mantine-color-brand-filled-hover": hoveredOf(shown),
  "--mantine-primary-color-contrast": wordsOn(shown),
});

/** The library's grey for lesser text, and a tenant's colour, may be too faint to read: both are held to WCAG AA. */
function readableVariables(color: string): CSSVariablesResolver {
  const onLight = readableOn(color, LIGHT_BACKGROUND);
  const onDark = readableOn(color, DARK_BACKGROUND);
  return ({ colors }) => ({
    variables: {},
    light: {
      ...STRONG_RED,
      ...filledWith(visibleOn(color, LIGHT_BACKGROUND)),
      ...readableWords(colors),
      "--mantine-color-dimmed": "#5c636a",
      "--mantine-color-placeholder": "#6a7178",
      "--mantine-color-error": "#c92a2a",
      "--mantine-color-anchor": onLight,
      "--mantine-color-brand-text": onLight,
      // The darkest ground that it stands on is that of a hovered entry.
      "--mantine-color-brand-light-color": readableOn(color, shadesOf(color)[2]),
    },
    dark: {
      ...STRONG_RED,
      ...filledWith(visibleOn(color, DARK_BACKGROUND)),
      "--mantine-color-dimmed": "#a6a7ab",
      "--mantine-color-placeholder": "#909296",
      "--mantine-color-error": "#ff8787",
      "--mantine-color-anchor": onDark,
      "--mantine-color-brand-text": onDark,
    },
  });
}
