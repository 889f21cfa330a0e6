import {
  Avatar,
  Group,
  Menu,
  Text,
  UnstyledButton,
  VisuallyHidden,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";

import { roleName } from "../session/roles.ts";
import { useSession, useSessionState } from "../session/session.tsx";
import { Icon } from "../ui/icon.tsx";

export function UserMenu() {
  const { signOut } = useSessionState();
  const { user, company } = useSession();
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light") === "dark";
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <UnstyledButton>
          <VisuallyHidden>Account of {user.name}</VisuallyHidden>
          <Group gap="xs" wrap="nowrap">
            <Avatar name={user.name} color="gray" radius="xl" size="sm" aria-hidden />
            <Text size="sm" visibleFrom="sm" aria-hidden>
              {user.name}
            </Text>
            <Icon name="chevronDown" size={14} />
          </Group>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {user.email}
          <br />
          {roleName(user.role)} at {company.name}
        </Menu.Label>
        <Menu.Item
          leftSection={<Icon name={isDark ? "sun" : "moon"} />}
          onClick={() => setColorScheme(isDark ? "light" : "dark")}
        >
          {isDark ? "Light colours" : "Dark colours"}
        </Menu.Item>
        <Menu.Item leftSection={<Icon name="signOut" />} onClick={signOut}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
