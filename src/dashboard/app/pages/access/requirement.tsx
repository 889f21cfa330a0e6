import { Switch } from "@mantine/core";
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { answerOf, type ApiClient } from "../../api/client.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Section } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import type { CompanyType } from "./data.ts";

const routesOf = (api: ApiClient, type: CompanyType) =>
  type === "account" ? api.account.security : api.partner.security;

const policyOptions = (api: ApiClient, type: CompanyType) =>
  queryOptions({
    queryKey: ["security-policy"],
    queryFn: () => answerOf(routesOf(api, type).get()),
  });

/** Returns a function that saves whether the company's people need a second factor. */
function useSetRequired() {
  const api = useApi();
  const { type } = useSession().company;
  const queries = useQueryClient();
  return async (isRequired: boolean) => {
    const saved = await answerOf(routesOf(api, type).patch({ require_second_factor: isRequired }));
    queries.setQueryData(policyOptions(api, type).queryKey, saved);
    await queries.invalidateQueries({ queryKey: ["second-factors"] });
  };
}

/** Switch that requires a second factor of the company's people. */
export function Requirement() {
  const { company } = useSession();
  const setRequired = useSetRequired();
  const policy = useQuery(policyOptions(useApi(), company.type));
  const [asked, setAsked] = useState<boolean>();
  return (
    <Section
      title="Two-step verification"
      description="A passkey or an authenticator app in addition to the password. Users of your identity provider verify there."
    >
      <Loaded query={policy}>
        {({ require_second_factor: isRequired }) => (
          <>
            <Switch
              label="Require two-step verification"
              description={`For all users of ${company.name}${company.type === "partner" ? ", but not those of its accounts" : ""}.`}
              checked={isRequired}
              onChange={(event) => setAsked(event.currentTarget.checked)}
            />
            <Confirm
              opened={asked !== undefined}
              onClose={() => setAsked(undefined)}
              title={isRequired ? "Stop requiring it?" : "Require two-step verification?"}
              action={isRequired ? "Stop requiring it" : "Require it"}
              onConfirm={() => setRequired(!isRequired)}
              done={
                isRequired
                  ? "Two-step verification is no longer required."
                  : "Two-step verification is required."
              }
            >
              {isRequired
                ? "Users without a second factor sign in with their password only. Existing factors stay."
                : "Users without a second factor set one up at their next sign-in. Current sessions stay active, but each proves a factor before secrets, tokens, people and roles are shown or changed."}
            </Confirm>
          </>
        )}
      </Loaded>
    </Section>
  );
}
