import { Text } from "@mantine/core";
import { queryOptions, useQuery } from "@tanstack/react-query";

import { allPages, answerOf, type ApiClient, type DataOf, pageAt } from "../../api/client.ts";
import { useApi, useSession } from "../../session/session.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { CellText, Dimmed, Section } from "../../ui/layout.tsx";
import { useRefresh } from "../../ui/pages.ts";
import { Loaded } from "../../ui/states.tsx";
import { ExactTime } from "../../ui/time.tsx";

/** Area of the API whose routes the section calls: that of operators, or that of partners. */
type Area = "admin" | "partner";

interface Person {
  readonly id: number;
  readonly name: string;
  readonly email: string;
}

/** Reads the identities of a user at identity providers. */
export const identitiesOptions = (api: ApiClient, area: Area, id: number) =>
  queryOptions({
    queryKey: ["identities", area, id],
    queryFn: () =>
      allPages((cursor) =>
        answerOf(api[area].users({ id }).identities.get({ query: pageAt(cursor) })),
      ),
  });

type Identity = DataOf<typeof identitiesOptions>[number];

interface UserProps {
  readonly area: Area;
  readonly user: Person;
}

/** Section that lists and unlinks the identities of a user at identity providers. */
export function IdentitiesSection(props: UserProps) {
  return (
    <Section
      title="Single sign-on"
      description="Accounts at identity providers with which the user signs in."
    >
      <IdentityTable {...props} />
    </Section>
  );
}

/** Table of the identities of a user, with buttons that unlink them. */
export function IdentityTable({ area, user }: UserProps) {
  return (
    <Loaded query={useQuery(identitiesOptions(useApi(), area, user.id))}>
      {(identities) =>
        identities.length === 0 ? (
          <Dimmed size="sm">
            None linked yet. The first single sign-on with the verified address {user.email} links
            one.
          </Dimmed>
        ) : (
          <DataTable
            caption="Identities"
            rows={identities}
            rowKey={({ id }) => String(id)}
            end="Actions"
            columns={(one) => ({
              Identity: (
                <>
                  <CellText title={one.issuer}>{one.subject}</CellText>
                  <Dimmed>
                    Linked <ExactTime at={one.linked_at} />
                  </Dimmed>
                </>
              ),
              Actions: <Unlink area={area} user={user} identity={one} />,
            })}
          />
        )
      }
    </Loaded>
  );
}

function Unlink({ area, user, identity }: UserProps & { readonly identity: Identity }) {
  const api = useApi();
  const { user: me } = useSession();
  const { andRead } = useRefresh(identitiesOptions(api, area, user.id).queryKey);
  const { issuer } = identity;
  return (
    <ConfirmedAction
      label="Unlink"
      button={{ size: "xs", "aria-label": `Unlink ${issuer}` }}
      title={`Unlink ${user.name} from ${issuer}?`}
      action="Unlink"
      danger
      onConfirm={() =>
        andRead(
          answerOf(
            api[area].users({ id: user.id }).identities({ identityId: identity.id }).delete(),
          ),
        )
      }
      done={`${user.name} unlinked.`}
    >
      {me.id === user.id && (
        <Text size="sm" fw={600} mb="xs">
          This is your own account. If you signed in by single sign-on, you are signed out
          immediately.
        </Text>
      )}
      All sessions of {user.email} from single sign-on end immediately. The next sign-in at the
      identity provider with the same verified address is linked to this user again, even if the
      address belongs to another person there.
    </ConfirmedAction>
  );
}
