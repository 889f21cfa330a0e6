import { Button, Checkbox, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { ConfirmedAction } from "../../ui/dialog.tsx";
import { counted } from "../../ui/format.ts";
import { notify } from "../../ui/notify.ts";
import { nameOf } from "./action-parts.ts";
import { type InboxAction, useInboxActions } from "./data.ts";

type Selection = ReturnType<typeof useSelection>;

/** Returns which of the rows are selected, and functions that change this. */
export function useSelection(rows: readonly InboxAction[]) {
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  return {
    /** Ids of the selected rows that are still in the list. */
    ids: rows.flatMap(({ id }) => (chosen.has(id) ? [id] : [])),
    count: rows.length,
    toggle: (id: number) => setChosen(chosen.symmetricDifference(new Set([id]))),
    selectAll: () => setChosen(new Set(rows.map(({ id }) => id))),
    clear: () => setChosen(new Set()),
  };
}

interface SelectRowProps {
  readonly action: InboxAction;
  readonly selection: Selection;
}

export function SelectRow({ action: one, selection: { ids, toggle } }: SelectRowProps) {
  return (
    <Checkbox
      aria-label={`Select ${nameOf(one.action, one.position)}`}
      checked={ids.includes(one.id)}
      onChange={() => toggle(one.id)}
    />
  );
}

/** Selects all rows of the list, and retries or deletes the selected ones, one after the other. */
export function Selected({ selection }: { readonly selection: Selection }) {
  const { ids, count, selectAll, clear } = selection;
  const { retryAll, dropAll } = useInboxActions();
  const [progress, setProgress] = useState<readonly [what: "Retried" | "Deleted", words: string]>();
  const following = (what: "Retried" | "Deleted", total: number) => (done: number) =>
    setProgress([what, `${what} ${done} of ${total}.`]);
  const retry = useMutation({
    mutationFn: async (all: readonly number[]) => {
      const follow = following("Retried", all.length);
      follow(0);
      await retryAll(all, follow);
      notify.done(`${counted(all.length, "action")} sent again. What fails again comes back.`);
    },
    onSuccess: clear,
    onError: (error) => notify.failed(error),
  });
  if (count === 0 && !retry.isPending) return null;
  const some = counted(ids.length, "action");
  return (
    <Group mb="sm" gap="sm" mih={36}>
      <Checkbox
        label={ids.length === 0 ? `Select all ${count} shown` : `${ids.length} selected`}
        checked={ids.length > 0 && ids.length === count}
        indeterminate={ids.length > 0 && ids.length < count}
        onChange={ids.length === count ? clear : selectAll}
      />
      {retry.isPending && <output>{progress?.[1]}</output>}
      {ids.length > 0 && !retry.isPending && (
        <>
          <Button size="xs" variant="default" onClick={() => retry.mutate(ids)}>
            {`Retry ${some}`}
          </Button>
          <ConfirmedAction
            label={`Delete ${some}`}
            button={{ size: "xs", variant: "subtle", color: "red" }}
            title={`Delete ${some}?`}
            action={`Delete ${some}`}
            danger
            onConfirm={async () => {
              await dropAll(ids, following("Deleted", ids.length));
              clear();
            }}
            done={`${some} deleted.`}
          >
            They are never recorded, no webhook is sent for them, and their services are not told.
            This cannot be undone.
            {progress?.[0] === "Deleted" && ` ${progress[1]}`}
          </ConfirmedAction>
        </>
      )}
    </Group>
  );
}
