import { Button, Group, Menu, Text } from "@mantine/core";
import { useRef, useState } from "react";

import type { CursorPage } from "../api/client.ts";
import { EXPORTED_AT_MOST, exportRows, type Format, type Line } from "./export-rows.ts";
import { counted, number } from "./format.ts";
import { notify } from "./notify.ts";

interface ExportMenuProps<Row> {
  /** Name of the file without its extension. */
  readonly name: string;
  readonly noun: readonly [one: string, many: string];
  /** Starts an export. Returns a function that reads one page of the rows that match the filters. */
  readonly start: () => (cursor: string | undefined) => Promise<CursorPage<Row>>;
  readonly lineOf: (row: Row) => Line;
}

/**
 * Menu that saves the rows that match the filters as a file. While it reads the rows, it shows their number and a
 * button that stops the export.
 */
export function ExportMenu<Row>({ name, noun, start, lineOf }: ExportMenuProps<Row>) {
  const [count, setCount] = useState<number>();
  const abort = useRef(new AbortController());
  const save = async (format: Format) => {
    abort.current = new AbortController();
    const { signal } = abort.current;
    setCount(0);
    try {
      const read = start();
      const made = await exportRows({ format, lineOf, read, onProgress: setCount, signal });
      const type = format === "csv" ? "text/csv" : "application/json";
      saveAs(`${name}.${format}`, type, made.parts);
      const what = counted(made.count, ...noun);
      notify.done(
        made.isCut
          ? `The newest ${what} are saved. There are more: choose an earlier time range and export again.`
          : `${what} saved.`,
      );
    } catch (error) {
      if (!signal.aborted) notify.failed(error);
    } finally {
      setCount(undefined);
    }
  };
  if (count !== undefined)
    return (
      <Group gap={4}>
        <Text size="xs" aria-live="polite">
          {number(count)} read…
        </Text>
        <Button size="xs" variant="subtle" onClick={() => abort.current.abort()}>
          Stop
        </Button>
      </Group>
    );
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default">Export</Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          Filtered {noun[1]}, up to {number(EXPORTED_AT_MOST)}
        </Menu.Label>
        <Menu.Item onClick={() => void save("csv")}>CSV</Menu.Item>
        <Menu.Item onClick={() => void save("json")}>JSON</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** Lets the browser save a file that was made in this page. */
export function saveAs(name: string, type: string, parts: readonly Blob[]): void {
  const url = URL.createObjectURL(new Blob([...parts], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // Releases the file after a minute, because the browser needs it until the download has started.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
