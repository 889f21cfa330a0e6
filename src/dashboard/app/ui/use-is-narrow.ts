import { useMantineTheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";

/** Tells whether the window is narrower than a breakpoint: the opposite of `visibleFrom`, as in the style sheets. */
export function useIsNarrow(below: "sm" | "md"): boolean {
  const theme = useMantineTheme();
  return useMediaQuery(`(width < ${theme.breakpoints[below]})`, undefined, {
    getInitialValueInEffect: false,
  });
}
