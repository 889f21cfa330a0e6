import { useLocation } from "wouter";

import { useApi } from "../../session/session.tsx";
import { Tag } from "../../ui/badges.tsx";
import { DialogButton, type OpenedByLink } from "../../ui/dialog.tsx";
import { useOpenedByLink } from "../../ui/filters.tsx";
import { counted, number } from "../../ui/format.ts";
import { CellText, PageHeader, RowLink } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { LastUsed, Time } from "../../ui/time.tsx";
import { scopesInWords, type Service, servicesOptions } from "./data.ts";
import { Expiry } from "./expiry.tsx";
import { ServiceForm } from "./service-form.tsx";

export function Page() {
  return (
    <>
      <PageHeader
        title="Services"
        description="Programs of the platform that call the API with tokens of their own, for all partners or for some."
        actions={<NewService {...useOpenedByLink()} />}
      />
      <TableList
        list={useList(servicesOptions(useApi()))}
        noun={["service", "services"]}
        empty={
          <EmptyState icon="server" title="No services yet" action={<NewService />}>
            Create a service for each program of the platform that records actions with reviews or
            checks tokens of users. Then give it a token.
          </EmptyState>
        }
        table={{
          caption: "Services, newest first",
          columns: (one) => ({
            Name: <CellText title={<RowLink href={`/services/${one.id}`}>{one.name}</RowLink>} />,
            "May do": scopesInWords(one.scopes),
            Partners: partnersInWords(one),
            ...tokenColumns(one),
            Created: <Time at={one.created_at} />,
          }),
        }}
      />
    </>
  );
}

/** Number of live tokens, the next end and the last use of them. A service without a token cannot call the API. */
function tokenColumns({ tokens }: Service) {
  const [next] = tokens.map((one) => one.expires_at).toSorted();
  const last = tokens
    .flatMap((one) => one.last_used_at ?? [])
    .toSorted()
    .at(-1);
  return {
    Tokens: tokens.length === 0 ? <Tag color="yellow">None</Tag> : number(tokens.length),
    "Next expiry": next === undefined ? "–" : <Expiry at={next} />,
    "Last used": <LastUsed at={last ?? null} />,
  };
}

const partnersInWords = ({ partner_ids: ids }: Service) =>
  ids === null ? "All" : counted(ids.length, "partner");

/** Button that opens the form of a new service. Afterwards the service's page opens, where it gets its first token. */
function NewService(opened: OpenedByLink) {
  const [, navigate] = useLocation();
  return (
    <DialogButton label="New service" {...opened}>
      {(close) => (
        <ServiceForm onClose={close} onCreated={({ id }) => navigate(`/services/${id}`)} />
      )}
    </DialogButton>
  );
}
