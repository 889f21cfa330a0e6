import { Select, Stack } from "@mantine/core";
import { useState } from "react";

import { CodeBlock } from "../../../ui/copy.tsx";
import { EVENT_EXAMPLES } from "../../../api/event-examples.ts";
import { inLines } from "../../../ui/json.ts";

interface PayloadPreviewProps {
  readonly mode: "full" | "minimal";
  /** It is null for all of them. */
  readonly events: readonly string[] | null;
}

/** Shows a body as it would arrive, of one of the events that are chosen. */
export function PayloadPreview({ mode, events }: PayloadPreviewProps) {
  const values = (events ?? Object.keys(EVENT_EXAMPLES)).filter((one) => one in EVENT_EXAMPLES);
  const [chosen, setChosen] = useState("review_received");
  const shown = values.includes(chosen) ? chosen : values[0];
  if (shown === undefined) return null;
  return (
    <Stack gap="xs">
      <Select
        label="Example"
        description="Each request carries one event."
        data={values}
        value={shown}
        allowDeselect={false}
        searchable
        onChange={(value) => value !== null && setChosen(value)}
      />
      <CodeBlock
        label={`${shown}, ${mode} body`}
        code={inLines(EVENT_EXAMPLES[shown]?.[mode] ?? "") ?? ""}
      />
    </Stack>
  );
}
