module reviewrelay

go 1.22
