import { Box, Button, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { phraseOf, sentenceOf } from "../../api/audit-words.ts";
import { useApi } from "../../session/session.tsx";
import { Tag } from "../../ui/badges.tsx";
import { CopyableId } from "../../ui/copy.tsx";
import { sentence } from "../../ui/format.ts";
import { Dimmed, Facts, PageLink } from "../../ui/layout.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { userOptions } from "../users/data.ts";
import { detailPairs, isSevere, objectPathOf } from "./audit-words.ts";
import css from "./audit.module.css";
import { useIsOperator, type AuditEntry } from "./data.ts";

interface AuditDetailsProps {
  readonly entry: AuditEntry;
  /** Called when the user clicks an actor. The caller filters the audit log by this user id. */
  readonly onActor: (id: number) => void;
}

/** Returns the cells of an audit log entry by column: a sentence about the action with a mark, and the time. */
export const auditColumns = (entry: AuditEntry) => ({
  Action: (
    <>
      <Sentence entry={entry} /> <Mark entry={entry} />
    </>
  ),
  Time: (
    <Dimmed>
      <ExactTime at={entry.at} />
    </Dimmed>
  ),
});

function Sentence({ entry }: { readonly entry: AuditEntry }) {
  const [before, name, after] = sentenceOf(entry);
  return (
    <>
      <strong>{actorOf(entry)}</strong>{" "}
      {entry.company_name !== null && (
        <Text span c="dimmed" inherit>
          ({entry.company_name}){" "}
        </Text>
      )}
      {before}
      {name !== "" && <strong>{name}</strong>}
      {after}
    </>
  );
}

/** Returns the name of the actor. An action without a request comes from a command or a job of the platform. */
function actorOf({ actor_name: name, request_id: request }: AuditEntry): string {
  return name ?? (request === null ? "The system" : "Somebody");
}

/**
 * Shows a tag at audit log entries that deserve attention: actions during an impersonation, and security-relevant
 * actions.
 */
function Mark({ entry }: { readonly entry: AuditEntry }) {
  const isImpersonated = entry.impersonator_id !== null;
  if (!isImpersonated && !isSevere(entry.action)) return null;
  const isTold = sentenceOf(entry)[0].startsWith("was impersonated");
  const impersonator = `by ${entry.impersonator_name ?? "somebody"}${isTold ? "" : ", impersonating"}`;
  return (
    <Tag color={isImpersonated ? "yellow" : "red"}>{isImpersonated ? impersonator : "Warning"}</Tag>
  );
}

/** Shows all fields of an audit log entry. */
export function AuditDetails({ entry, onActor }: AuditDetailsProps) {
  const { actor_id: actor, impersonator_id: impersonator, request_id: request } = entry;
  const path = objectPathOf(entry.details, useIsOperator());
  return (
    <Box className={css.details} pt={4} pb="sm" pl={{ sm: 28 }}>
      <Facts
        facts={[
          ...Object.entries({
            When: <ExactTime at={entry.at} />,
            Action: sentence(phraseOf(entry.action)),
            Who: <Who id={actor} name={entry.actor_name} />,
            ...(impersonator !== null && {
              "Impersonated by": <Who id={impersonator} name={entry.impersonator_name} />,
            }),
            ...(entry.object_name !== null && {
              Object:
                path === undefined ? (
                  entry.object_name
                ) : (
                  <PageLink href={path} underline="always">
                    {entry.object_name}
                  </PageLink>
                ),
            }),
          }),
          ...detailPairs(entry.details).map(
            ([name, value]) =>
              [name, INSTANT.test(value) ? <ExactTime key={name} at={value} /> : value] as const,
          ),
          ...Object.entries({
            "IP address": entry.ip ?? "Unknown",
            "User agent": entry.user_agent ?? "None",
            Request:
              request === null ? (
                "None (a command or a job)"
              ) : (
                <CopyableId id={request} label="Copy the request ID" />
              ),
          }),
        ]}
      />
      {actor !== null && (
        <Button mt="sm" size="xs" variant="default" onClick={() => onActor(actor)}>
          Show only this user
        </Button>
      )}
    </Box>
  );
}

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/;

function Who({ id, name }: { readonly id: number | null; readonly name: string | null }) {
  const { data } = useQuery(userOptions(useApi(), useIsOperator() ? id : null));
  if (id === null) return "Unknown user";
  return `${name ?? "Unknown"}${data === undefined ? "" : `, ${data.email}`} (user ${id})`;
}
