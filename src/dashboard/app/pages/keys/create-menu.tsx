import { Button, Menu, Text } from "@mantine/core";

import { Icon } from "../../ui/icon.tsx";

/** Kind of key that the page creates. The personal access token is not created from this menu. */
export type CreatedKind = "token" | "integration" | "client";

export const KINDS: Readonly<Record<CreatedKind, readonly [name: string, purpose: string]>> = {
  token: ["24-hour token", "for a script or a test, with scopes of your choice."],
  integration: [
    "Integration",
    "for a program of your company, with scopes of your choice. It keeps working when people leave.",
  ],
  client: ["OAuth client", "for an app in which users sign in."],
};

interface CreateMenuProps {
  readonly kinds: readonly CreatedKind[];
  readonly onCreate: (kind: CreatedKind) => void;
}

export function CreateMenu({ kinds, onCreate }: CreateMenuProps) {
  return (
    <Menu position="bottom-end" width={340}>
      <Menu.Target>
        <Button rightSection={<Icon name="chevronDown" size={14} />}>Create</Button>
      </Menu.Target>
      <Menu.Dropdown>
        {kinds.map((kind) => (
          <Menu.Item key={kind} onClick={() => onCreate(kind)}>
            {KINDS[kind][0]}
            <Text span display="block" size="xs" c="dimmed">
              {KINDS[kind][1].replace(/^f/, "F")}
            </Text>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
