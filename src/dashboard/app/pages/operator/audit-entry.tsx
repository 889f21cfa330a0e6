import { Badge, Button, Group, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useId } from "react";

import { Copy } from "../../ui/copy.tsx";
import { Icon } from "../../ui/icon.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { sentence } from "../../ui/words.ts";
import { actionWords, detailPairs, isGrave } from "./audit-words.ts";
import { CompanyName } from "./company-name.tsx";
import { useUser } from "./data.ts";

interface Entry {
  readonly id: number;
  readonly at: string;
  readonly action: string;
  readonly actor_id: number | null;
  readonly impersonator_id: number | null;
  readonly company_id: number | null;
  readonly ip: string | null;
  readonly user_agent: string | null;
  readonly request_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

interface Props {
  readonly entry: Entry;
  /** Somebody wants to see what else this user did. */
  readonly onActor: (id: number) => void;
}

/** One line that says who did what; the rest on demand. */
export function AuditEntry({ entry, onActor }: Props) {
  const [isOpen, { toggle }] = useDisclosure();
  const id = useId();
  return (
    <li>
      <UnstyledButton
        className="audit-line"
        onClick={toggle}
        aria-expanded={isOpen}
        aria-controls={id}
      >
        <span className="chevron" data-open={isOpen}>
          <Icon name="chevronRight" size={16} />
        </span>
        <Text span size="sm" className="shrinks">
          <Text span fw={600} inherit>
            <UserName id={entry.actor_id} />
          </Text>{" "}
          {actionWords(entry.action)}
          <Subject details={entry.details} />
          {entry.company_id !== null && (
            <Text span c="dimmed" inherit>
              {" "}
              · <CompanyName id={entry.company_id} />
            </Text>
          )}
        </Text>
        {entry.impersonator_id !== null && (
          <Badge color="yellow" variant="light" tt="none" radius="sm" className="mark">
            by <UserName id={entry.impersonator_id} />, impersonating
          </Badge>
        )}
        {isGrave(entry.action) && entry.impersonator_id === null && (
          <Badge color="red" variant="light" tt="none" radius="sm" className="mark">
            Warning
          </Badge>
        )}
        <Text span size="sm" c="dimmed" className="one-line">
          <Time at={entry.at} />
        </Text>
      </UnstyledButton>
      <div id={id} hidden={!isOpen}>
        {isOpen && <Details entry={entry} onActor={onActor} />}
      </div>
    </li>
  );
}

/** Whom or what it was done to, where that is somebody or something with a name. */
function Subject({ details }: Pick<Entry, "details">) {
  const { user_id: user, company_id: company, provider } = details;
  if (typeof user === "number")
    return (
      <>
        : <UserName id={user} />
      </>
    );
  if (typeof company === "number")
    return (
      <>
        : <CompanyName id={company} />
      </>
    );
  return typeof provider === "string" ? `: ${provider}` : null;
}

function UserName({ id }: { readonly id: number | null }) {
  const { data } = useUser(id);
  if (id === null) return "Somebody";
  return data?.name ?? `User ${id}`;
}

function Details({ entry, onActor }: Props) {
  const { actor_id: actor, impersonator_id: impersonator, request_id: request } = entry;
  return (
    <div className="audit-details">
      <dl className="facts">
        <dt>When</dt>
        <dd>
          <ExactTime at={entry.at} />
        </dd>
        <dt>Action</dt>
        <dd>
          <code>{entry.action}</code>
        </dd>
        <dt>Who</dt>
        <dd>
          <Who id={actor} />
        </dd>
        {impersonator !== null && (
          <>
            <dt>Impersonated by</dt>
            <dd>
              <Who id={impersonator} />
            </dd>
          </>
        )}
        {detailPairs(entry.details).map(([name, value]) => (
          <Fact key={name} name={sentence(name)} value={value} />
        ))}
        <Fact name="IP address" value={entry.ip ?? "Unknown"} />
        <Fact name="User agent" value={entry.user_agent ?? "None"} />
        <dt>Request</dt>
        <dd>
          {request === null ? (
            "None: a command line did it"
          ) : (
            <Group gap={4} wrap="nowrap">
              <code>{request}</code>
              <Copy value={request} label="Copy the request's id" />
            </Group>
          )}
        </dd>
      </dl>
      {actor !== null && (
        <Button mt="sm" size="xs" variant="default" onClick={() => onActor(actor)}>
          Only what this user did
        </Button>
      )}
    </div>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

function Who({ id }: { readonly id: number | null }) {
  const { data } = useUser(id);
  if (id === null) return "Nobody who is known here";
  return data === undefined ? `User ${id}` : `${data.name}, ${data.email} (user ${id})`;
}
