import { ActionIcon, Button, CopyButton, Group, TextInput, Tooltip } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { Icon } from "./icon.tsx";

export function Copy({ value, label }: { readonly value: string; readonly label: string }) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : label}>
          <ActionIcon
            variant="subtle"
            color={copied ? "teal" : "gray"}
            onClick={copy}
            aria-label={copied ? "Copied" : label}
          >
            <Icon name={copied ? "check" : "copy"} size={16} />
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

/** Shows a secret as dots until the user asks to see it. */
export function SecretField({ label, value }: { readonly label: string; readonly value: string }) {
  const [isShown, setShown] = useState(false);
  return (
    <Group align="flex-end" gap="xs">
      <TextInput
        label={label}
        value={isShown ? value : "•".repeat(Math.min(value.length, 32))}
        readOnly
        className="grows secret"
        classNames={{ input: "mono" }}
      />
      <Button variant="default" onClick={() => setShown(!isShown)} aria-pressed={isShown}>
        {isShown ? "Hide" : "Show"}
      </Button>
      <CopyButton value={value}>
        {({ copied, copy }) => (
          <Button onClick={copy} leftSection={<Icon name={copied ? "check" : "copy"} size={16} />}>
            {copied ? "Copied" : "Copy"}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}

/** Shows text verbatim in a scrollable box, and never interprets it as markup. */
export function CodeBlock({
  label,
  code,
  copied = code,
  wraps = false,
  isJson = false,
}: {
  readonly label: string;
  readonly code: string;
  /** Text that the copy button copies, if it differs from the shown text. */
  readonly copied?: string;
  /** Wraps long lines. Use it for text from other systems, whose lines may have any length. */
  readonly wraps?: boolean;
  /** Colours the parts of JSON. */
  readonly isJson?: boolean;
}) {
  return (
    <figure className="code-figure">
      <Group justify="space-between" gap="xs">
        <figcaption>{label}</figcaption>
        <Copy value={copied} label={`Copy: ${label}`} />
      </Group>
      {/* The box is focusable, so that keyboard users can scroll it. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className="code-block" data-wraps={wraps || undefined} tabIndex={0} aria-label={label}>
        {isJson && code.length <= COLOURED_CHARS ? jsonParts(code) : code}
      </pre>
    </figure>
  );
}

/** The longest JSON in characters that is coloured. More elements would make the page slow. */
const COLOURED_CHARS = 20_000;
const TOKEN =
  /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Divides JSON into its text, with an element around each name and value. */
function jsonParts(code: string): ReactNode[] {
  const parts: ReactNode[] = [];
  let end = 0;
  for (const { 0: found, 1: text, 2: colon = "", index } of code.matchAll(TOKEN)) {
    const kind = text === undefined ? "literal" : "text";
    parts.push(
      code.slice(end, index),
      <span key={index} className={colon === "" ? `json-${kind}` : "json-name"}>
        {text ?? found}
      </span>,
      colon,
    );
    end = index + found.length;
  }
  return [...parts, code.slice(end)];
}
