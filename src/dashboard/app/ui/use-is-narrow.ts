import { useMantineTheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";

/** Returns whether the window is narrower than a breakpoint, as the counterpart of Mantine's `visibleFrom`. */
export function useIsNarrow(below: "sm" | "md"): boolean {
  const theme = useMantineTheme();
  return useMediaQuery(`(width < ${theme.breakpoints[below]})`, undefined, {
    getInitialValueInEffect: false,
  });
}
