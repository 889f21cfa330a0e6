import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { useApi } from "../../session/session.tsx";
import { StateBadge, Tag } from "../../ui/badges.tsx";
import { DialogButton } from "../../ui/dialog.tsx";
import { useFilters } from "../../ui/filters.tsx";
import { counted, idOf } from "../../ui/format.ts";
import { CellText, Dimmed, PageHeader, PageTabs } from "../../ui/layout.tsx";
import { TableList } from "../../ui/list.tsx";
import { useList } from "../../ui/pages.ts";
import { EmptyState } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";
import { userOptions } from "../users/data.ts";
import { type Erasure, erasuresOptions } from "./data.ts";
import { Deletions, DeleteCompany } from "./deletions.tsx";
import { EraseForm } from "./erase-form.tsx";

export function Page() {
  const { get, set } = useFilters(["tab", "user", "company", "new"]);
  const isOfCompanies = get("tab") === "companies";
  const isNew = get("new") !== undefined;
  const actions = isOfCompanies ? (
    <DeleteCompany
      key="company"
      companyId={idOf(get("company"))}
      isNew={isNew}
      onClosed={() => set({ company: undefined, new: undefined })}
    />
  ) : (
    <ErasePerson
      key="person"
      userId={idOf(get("user"))}
      isNew={isNew}
      onClosed={() => set({ user: undefined, new: undefined })}
    />
  );
  return (
    <>
      <PageHeader
        title="Erasures"
        description="Remove a person's data on request, or a company with everything that belongs to it."
        actions={actions}
      />
      <PageTabs
        value={isOfCompanies ? "companies" : "people"}
        onChange={(tab) =>
          set({
            tab: tab === "companies" ? tab : undefined,
            user: undefined,
            company: undefined,
          })
        }
        tabs={{
          people: { title: "People", content: <Erased action={<ErasePerson />} /> },
          companies: { title: "Companies", content: <Deletions action={<DeleteCompany />} /> },
        }}
      />
    </>
  );
}

interface ErasePersonProps {
  readonly userId?: number | undefined;
  readonly isNew?: boolean;
  readonly onClosed?: () => void;
}

/** Button that opens the form of an erasure, at once if the address names the user or asks for the form. */
function ErasePerson({ userId, isNew = false, ...dialog }: ErasePersonProps) {
  return (
    <DialogButton
      label="Erase a person"
      isOpen={isNew || userId !== undefined}
      button={{ color: "red" }}
      {...dialog}
    >
      {(close) => <EraseForm userId={userId} onClose={close} />}
    </DialogButton>
  );
}

function Erased({ action }: { readonly action: ReactNode }) {
  return (
    <TableList
      list={useList(erasuresOptions(useApi()))}
      noun={["erasure", "erasures"]}
      empty={
        <EmptyState icon="trash" title="Nobody was erased yet" action={action}>
          A reviewer or a user can ask you to erase their data. The list then shows what was done,
          but not for whom.
        </EmptyState>
      }
      table={{
        caption: "Erasures, newest first",
        columns: (one) => ({
          Erasure: (
            <CellText title={one.kind === "user" ? "A user" : "A reviewer"}>
              <code>{one.id}</code>
            </CellText>
          ),
          State: <StateBadge state={one.state} />,
          Requested: (
            <>
              <Time at={one.requested_at} />
              <Dimmed>
                by <Requester id={one.requested_by} />
              </Dimmed>
            </>
          ),
          Finished: one.finished_at === null ? "Not yet" : <Time at={one.finished_at} />,
          Erased: <Counts erasure={one} />,
        }),
      }}
    />
  );
}

function Requester({ id }: { readonly id: number | null }) {
  const { data } = useQuery(userOptions(useApi(), id));
  if (id === null) return "the command line";
  return data?.name ?? `user ${id}`;
}

const COUNT_WORDS = {
  users: "user",
  reviews: "review",
  events: "event",
  attempts: "attempt",
  mails: "waiting mail",
  actions: "inbox action",
  responses: "stored answer",
  sign_ins: "sign-in",
  audit_rows: "audit entry",
  recipients: "alert recipient",
} as const satisfies Record<keyof Erasure["counts"], string>;

/** Lists how many records of each kind an erasure has changed. */
function Counts({ erasure: { counts, state, kind } }: { readonly erasure: Erasure }) {
  const words = Object.entries(COUNT_WORDS).flatMap(([what, noun]) => {
    const count = Object.entries(counts).find(([name]) => name === what)?.[1] ?? 0;
    const many = noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
    return count === 0 ? [] : [counted(count, noun, many)];
  });
  if (words.length > 0) return words.join(", ");
  if (state !== "done") return "Nothing yet";
  return (
    <>
      <Tag color="yellow">Nothing was found</Tag>
      {kind === "reviewer" && (
        <Dimmed>No review has this email address. Check its spelling and try again.</Dimmed>
      )}
    </>
  );
}
