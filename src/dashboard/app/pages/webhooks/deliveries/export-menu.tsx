import { Button, Group, Menu, Text } from "@mantine/core";
import { useRef, useState } from "react";
import { useSearchParams } from "wouter";

import { counted, number } from "../../../ui/format.ts";
import { notify } from "../../../ui/notify.ts";
import { filterOf, messageFilterOf } from "../data/filters.ts";
import { readAttempts, readMessages } from "../data/list-reads.ts";
import { type Reader } from "../data/reads.ts";
import { useReader } from "../data/data.ts";
import {
  EXPORTED_AT_MOST,
  exportRows,
  type Format,
  lineOfAttempt,
  lineOfMessage,
} from "./export-rows.ts";

interface ExportMenuProps {
  readonly id: string;
  readonly isByAttempt: boolean;
}

/** Menu that exports the rows that match the filter to a file. */
export function ExportMenu({ id, isByAttempt }: ExportMenuProps) {
  const reader = useReader();
  const [params] = useSearchParams();
  const [count, setCount] = useState<number>();
  const abort = useRef<AbortController>(null);
  const save = async (format: Format) => {
    const controller = new AbortController();
    abort.current = controller;
    setCount(0);
    const given = { format, onProgress: setCount, signal: controller.signal };
    try {
      const made = isByAttempt
        ? await exportRows({
            ...given,
            lineOf: lineOfAttempt,
            read: attemptsFor(reader, id, params),
          })
        : await exportRows({
            ...given,
            lineOf: lineOfMessage,
            read: messagesFor(reader, id, params),
          });
      saveAs(`${isByAttempt ? "attempts" : "events"}.${format}`, format, made.parts);
      const what = counted(made.count, isByAttempt ? "attempt" : "event");
      notify.done(
        made.isCut
          ? `The newest ${what} are saved; there are more. Choose a time for the others.`
          : `${what} saved.`,
      );
    } catch (error) {
      if (!controller.signal.aborted) notify.failed(error);
    } finally {
      setCount(undefined);
    }
  };
  if (count !== undefined)
    return (
      <Group gap={4}>
        <Text size="xs" aria-live="polite">
          {number(count)} read …
        </Text>
        <Button size="xs" variant="subtle" onClick={() => abort.current?.abort()}>
          Stop
        </Button>
      </Group>
    );
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default">Export …</Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>What is filtered, up to {number(EXPORTED_AT_MOST)}</Menu.Label>
        <Menu.Item onClick={() => void save("csv")}>CSV</Menu.Item>
        <Menu.Item onClick={() => void save("json")}>JSON</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/**
 * Returns a function that reads one page of events. The default of `until` excludes events that arrive during
 * the export, because an event that moves within the list would be exported twice.
 */
function messagesFor(reader: Reader, id: string, params: URLSearchParams) {
  const filter = { until: new Date().toISOString(), ...messageFilterOf(params) };
  return (cursor: string | undefined) => readMessages(reader, id, filter, { cursor });
}

function attemptsFor(reader: Reader, id: string, params: URLSearchParams) {
  const filter = filterOf(params);
  return (cursor: string | undefined) => readAttempts(reader, id, filter, cursor);
}

function saveAs(name: string, format: Format, parts: readonly Blob[]): void {
  const type = format === "csv" ? "text/csv" : "application/json";
  const url = URL.createObjectURL(new Blob([...parts], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // Releases the file after a minute, because the browser needs it until the download has started.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
