import { Button, Paper } from "@mantine/core";
import { Link } from "wouter";

import { EmptyState } from "../../ui/states.tsx";
import type { KINDS } from "./kinds.ts";
import { useIsReadOnly } from "./data/viewed-partner.ts";

/** Shows a slot that is free, and says what it would be good for. */
export function EmptySlot({ kind }: { readonly kind: (typeof KINDS)[number] }) {
  const { title, purpose } = kind;
  const isReadOnly = useIsReadOnly();
  return (
    <Paper component="section" className="free-slot" aria-label={`${title}: free`}>
      <EmptyState
        icon={kind.kind === "batch" ? "clock" : "send"}
        title={`${title}: not in use`}
        action={
          !isReadOnly && (
            <Button
              component={Link}
              href={`/webhooks/new?kind=${kind.kind}`}
              variant="light"
              mt="sm"
            >
              Set up {kind.kind} delivery
            </Button>
          )
        }
      >
        {purpose}
      </EmptyState>
    </Paper>
  );
}
