import { Box, Button, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { entryWords } from "../../api/audit-words.ts";
import { useApi } from "../../session/session.tsx";
import { CopyableId } from "../../ui/copy.tsx";
import { sentence } from "../../ui/format.ts";
import { Dimmed, Facts } from "../../ui/layout.tsx";
import { Tag } from "../../ui/badges.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { companyOptions } from "../companies/data.ts";
import { useTeamNames } from "../partner/data.ts";
import { userOptions } from "../users/data.ts";
import { useReader } from "../webhooks/data/data.ts";
import { subscriptionsOptions } from "../webhooks/data/reads.ts";
import { detailPairs, isSevere } from "./audit-words.ts";
import { useIsOperator, type AuditEntry } from "./data.ts";

interface AuditDetailsProps {
  readonly entry: AuditEntry;
  /** Called when the user clicks an actor. The caller filters the audit log by this user id. */
  readonly onActor: (id: number) => void;
}

/** Returns the cells of an audit log entry by column: the action with its actor, a mark, and the time. */
export const auditColumns = (entry: AuditEntry) => ({
  Action: (
    <>
      <strong>{entry.actor_name ?? "Somebody"}</strong>{" "}
      {entry.company_name !== null && (
        <Text span c="dimmed" inherit>
          ({entry.company_name}){" "}
        </Text>
      )}
      {entryWords(entry)}
      <Subject details={entry.details} />
    </>
  ),
  Note: <Mark entry={entry} />,
  Time: (
    <Dimmed>
      <ExactTime at={entry.at} />
    </Dimmed>
  ),
});

/**
 * Shows a tag at audit log entries that deserve attention: actions during an impersonation, and security-relevant
 * actions.
 */
function Mark({ entry }: { readonly entry: AuditEntry }) {
  const isImpersonated = entry.impersonator_id !== null;
  if (!isImpersonated && !isSevere(entry.action)) return null;
  return (
    <Tag color={isImpersonated ? "yellow" : "red"}>
      {isImpersonated ? `by ${entry.impersonator_name ?? "somebody"}, impersonating` : "Warning"}
    </Tag>
  );
}

/**
 * Shows the user, company, subscription or provider that an audited action was applied to, if the details of
 * the entry name one.
 */
function Subject({ details }: Pick<AuditEntry, "details">) {
  const { user_id: user, company_id: company, subscription_id: subscription, provider } = details;
  const isOperator = useIsOperator();
  if (typeof user === "number") return <SubjectUser id={user} />;
  if (typeof company === "number") return <SubjectCompany id={company} />;
  if (typeof subscription === "string")
    return isOperator ? null : <SubscriptionLabel id={subscription} />;
  return typeof provider === "string" ? `: ${provider}` : null;
}

/**
 * Shows the label of a webhook subscription. Renders nothing for a deleted subscription, because its label no
 * longer exists.
 */
function SubscriptionLabel({ id }: { readonly id: string }) {
  const { data } = useQuery(subscriptionsOptions(useReader()));
  const label = data?.data.find((one) => one.id === id)?.label;
  return label === undefined ? null : `: ${label}`;
}

/**
 * Shows the name of a user. Operators may read the name of every user, a partner only those of its team; other
 * users are shown by id.
 */
function SubjectUser({ id }: { readonly id: number }) {
  const isOperator = useIsOperator();
  const { data } = useQuery(userOptions(useApi(), isOperator ? id : null));
  const team = useTeamNames(!isOperator);
  return `: ${data?.name ?? team.get(id) ?? `user ${id}`}`;
}

function SubjectCompany({ id }: { readonly id: number }) {
  const { data } = useQuery(companyOptions(useApi(), useIsOperator() ? id : null));
  return `: ${data?.name ?? `company ${id}`}`;
}

/** Shows all fields of an audit log entry. */
export function AuditDetails({ entry, onActor }: AuditDetailsProps) {
  const { actor_id: actor, impersonator_id: impersonator, request_id: request } = entry;
  return (
    <Box pb="sm" pl={{ sm: 28 }}>
      <Facts
        facts={[
          ...Object.entries({
            When: <ExactTime at={entry.at} />,
            Action: <code>{entry.action}</code>,
            Who: <Who id={actor} name={entry.actor_name} />,
            ...(impersonator !== null && {
              "Impersonated by": <Who id={impersonator} name={entry.impersonator_name} />,
            }),
          }),
          ...detailPairs(entry.details).map(([name, value]) => [sentence(name), value] as const),
          ...Object.entries({
            "IP address": entry.ip ?? "Unknown",
            "User agent": entry.user_agent ?? "None",
            Request:
              request === null ? (
                "None (run from the command line)"
              ) : (
                <CopyableId id={request} label="Copy the request's id" />
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

function Who({ id, name }: { readonly id: number | null; readonly name: string | null }) {
  const { data } = useQuery(userOptions(useApi(), useIsOperator() ? id : null));
  if (id === null) return "Unknown user";
  return `${name ?? "Unknown"}${data === undefined ? "" : `, ${data.email}`} (user ${id})`;
}
