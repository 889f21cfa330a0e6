import { useMantineTheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";

/** Whether a table has no room for its columns: those whose rows tell most need more than others (`ui.css`). */
export function useIsNarrow(below: "sm" | "md"): boolean {
  const theme = useMantineTheme();
  return useMediaQuery(`(max-width: ${theme.breakpoints[below]})`, undefined, {
    getInitialValueInEffect: false,
  });
}
