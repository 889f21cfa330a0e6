import { createTheme, MantineProvider, type CSSVariablesResolver } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { useMemo, type ReactNode } from "react";

import { readableOn, shadesOf } from "./colors.ts";
import { useSessionState } from "./session.tsx";

const PLATFORM_COLOR = "#1f6feb";
const DARK_BACKGROUND = "#242424";

/** Of the document's policy: style elements that the components write carry it. */
export function styleNonce(): string {
  return document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";
}

/** The components in the colours of whoever is signed in. */
export function Look({ children }: { readonly children: ReactNode }) {
  const { session } = useSessionState();
  const color = session?.theme.primary_color ?? PLATFORM_COLOR;
  const theme = useMemo(
    () =>
      createTheme({
        primaryColor: "brand",
        primaryShade: 6,
        colors: { brand: shadesOf(color) },
        autoContrast: true,
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
      cssVariablesResolver={variables}
      getStyleNonce={styleNonce}
    >
      <Notifications position="bottom-right" />
      {children}
    </MantineProvider>
  );
}

/** The library's own are too faint on their light grounds; those of the dark scheme are not. */
const READABLE_BADGES = {
  "--mantine-color-yellow-light-color": "#7a4700",
  "--mantine-color-teal-light-color": "#06664a",
  "--mantine-color-red-light-color": "#a61e1e",
  "--mantine-color-blue-light-color": "#155a9c",
};

/** The library's grey for lesser text, and a tenant's colour, may be too faint to read: both are held to WCAG AA. */
function readableVariables(color: string): CSSVariablesResolver {
  const onWhite = readableOn(color, "#ffffff");
  const onDark = readableOn(color, DARK_BACKGROUND);
  return () => ({
    variables: {},
    light: {
      "--mantine-color-dimmed": "#5c636a",
      "--mantine-color-placeholder": "#6a7178",
      "--mantine-color-error": "#c92a2a",
      "--mantine-color-anchor": onWhite,
      "--mantine-color-brand-text": onWhite,
      "--mantine-color-brand-light-color": readableOn(color, shadesOf(color)[1]),
      ...READABLE_BADGES,
    },
    dark: {
      "--mantine-color-dimmed": "#a6a7ab",
      "--mantine-color-placeholder": "#909296",
      "--mantine-color-error": "#ff8787",
      "--mantine-color-anchor": onDark,
      "--mantine-color-brand-text": onDark,
      "--mantine-color-brand-light-color": readableOn(color, "#2c2e33"),
    },
  });
}
