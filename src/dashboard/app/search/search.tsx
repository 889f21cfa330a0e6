import { Button, Text } from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { lazy, Suspense } from "react";

import { Icon } from "../ui/icon.tsx";
import type { Area } from "../shell/page.tsx";

const Palette = lazy(() => import("./palette.tsx").then(({ Palette: one }) => ({ default: one })));

/** Search button in the header of every page. Ctrl-K and Cmd-K open the search dialog, too. */
export function Search({ areas }: { readonly areas: readonly Area[] }) {
  const [opened, { open, close }] = useDisclosure();
  useHotkeys([["mod+K", open]], []);
  return (
    <>
      <Button
        variant="default"
        size="xs"
        className="search-button"
        aria-keyshortcuts="Control+K Meta+K"
        leftSection={<Icon name="search" size={16} />}
        onClick={open}
      >
        <span className="unseen-on-phones">Search</span>
        <Text span size="xs" c="dimmed" ml={6} visibleFrom="sm" aria-hidden>
          Ctrl K
        </Text>
      </Button>
      {opened && (
        <Suspense>
          <Palette areas={areas} onClose={close} />
        </Suspense>
      )}
    </>
  );
}
